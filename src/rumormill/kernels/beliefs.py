"""Thompson draws: the rule of `rm.Default()` (default_rule.py), compiled, and draws about the rows of KMP."""

from __future__ import annotations

import numpy as np

from rumormill import default_rule as rule
from rumormill import formulas
from rumormill.default_rule import LARGEST_DRAW, NEXT_FIT, Beliefs
from rumormill.kernels.counter_rng import Keys, key_with, uniform_at
from rumormill.kernels.jit import linked, part
from rumormill.kernels.state import Flags, Floats, Ids, State

inverse_normal = part(formulas.inverse_normal)
huber_scale = part(formulas.huber_scale)
thompson_draw = part(formulas.thompson_draw)
sketch_add = part(formulas.sketch_add)
sketch_clipsum = part(formulas.sketch_clipsum)
sketch_clipsquares = part(formulas.sketch_clipsquares)
sketch_root = part(formulas.sketch_root)

clip_both = part(rule.clip_both)
insert_sorted = part(rule.insert_sorted)
median_of = part(rule.median_of)
middle_distance = part(rule.middle_distance)
pilot_size = part(rule.pilot_size)
pilot_arm = part(rule.pilot_arm)
scarce_arm = part(rule.scarce_arm)
add_to_sketch = linked(rule.add_to_sketch, sketch_add=sketch_add)
add_samples = linked(rule.add_samples, insert_sorted=insert_sorted, add_to_sketch=add_to_sketch)
pooled_clip = linked(
    rule.pooled_clip, median_of=median_of, middle_distance=middle_distance, huber_scale=huber_scale
)
fit_location = linked(rule.fit_location, median_of=median_of, clip_both=clip_both)
smooth_score = part(rule.smooth_score)
aligned_score = linked(rule.aligned_score, median_of=median_of, smooth_score=smooth_score)
skewed = linked(rule.skewed, median_of=median_of)
locate = part(rule.locate)
update_mean = linked(
    rule.update_mean,
    sketch_root=sketch_root,
    sketch_clipsum=sketch_clipsum,
    sketch_clipsquares=sketch_clipsquares,
)
update_value = linked(rule.update_value, update_mean=update_mean, locate=locate)
test_shapes = linked(
    rule.test_shapes, locate=locate, skewed=skewed, update_mean=update_mean, aligned_score=aligned_score
)
fit = linked(
    rule.fit,
    pooled_clip=pooled_clip,
    fit_location=fit_location,
    median_of=median_of,
    add_to_sketch=add_to_sketch,
    test_shapes=test_shapes,
)


@part
def beliefs_of(j: int, b: Beliefs) -> Beliefs:
    """The beliefs of one learner, of those of all."""
    return Beliefs(
        b.n[j],
        b.store[j],
        b.centre[j],
        b.psi[j],
        b.square[j],
        b.inside[j],
        b.origin[j],
        b.top[j],
        b.filled[j],
        b.rest[j],
        b.squares[j],
        b.fitted_n[j],
        b.known[j],
        b.value[j],
        b.spread[j],
        b.share[j],
        b.now[j],
    )


@part
def add_to_beliefs(count: int, arms: Ids, xs: Floats, j: int, beliefs: Beliefs) -> None:
    """Samples of learner j, in this order."""
    add_samples(beliefs_of(j, beliefs), count, arms, xs)


@part
def choose_by_beliefs(
    t: int, needed: Flags, groups: Floats, keys: Keys, beliefs: Beliefs, action: Ids
) -> None:
    """The arm of every learner in round t; learners are agents."""
    for j in range(action.shape[0]):
        if needed[j]:
            action[j] = choose_one(t, j, groups[j], keys[j], beliefs_of(j, beliefs))


@part
def choose_one(t: int, agent: int, group: float, key: np.uint64, beliefs: Beliefs) -> int:
    """The arm of one learner."""
    n_arms = beliefs.n.shape[0]
    arm = pilot_arm(t, agent, beliefs.n, pilot_size(n_arms))
    if arm >= 0:
        return arm
    total = 0.0
    for k in range(n_arms):
        total += beliefs.n[k]
    if total >= beliefs.now[NEXT_FIT]:
        fit(beliefs)
    key = key_with(key, np.uint64(t))
    sure = -np.inf
    for k in range(n_arms):
        update_value(beliefs, k)
        sure = max(sure, beliefs.value[k] - LARGEST_DRAW * beliefs.spread[k])
    arm = scarce_arm(beliefs, beliefs.n, group, uniform_at(key_with(key, np.uint64(n_arms))))
    if arm >= 0:
        return arm
    best, arm = -np.inf, 0
    for k in range(n_arms):
        value, spread = beliefs.value[k], beliefs.spread[k]
        if value + LARGEST_DRAW * spread < sure:
            continue  # below some other draw, whatever is drawn
        drawn = value + spread * inverse_normal(uniform_at(key_with(key, np.uint64(k))))
        if drawn > best:
            best, arm = drawn, k
    return arm


@part
def draw_by_rows(
    t: int, width: float, least: float, needed: Flags, keys: Keys, scale: Floats, state: State
) -> None:
    """The arm of the largest draw about the row with most samples; with too few own samples +inf."""
    for j in range(state.action.shape[0]):
        if not needed[j]:
            continue
        key, best = key_with(keys[j], np.uint64(t)), -np.inf
        for arm in range(state.n.shape[0]):
            value = np.inf
            if state.n[arm, j] >= least:
                z = inverse_normal(uniform_at(key_with(key, np.uint64(arm))))
                value = thompson_draw(state.best_mean[arm, j], state.best_n[arm, j], width * scale[arm, j], z)
            if value > best:
                best = value
                state.action[j] = arm
