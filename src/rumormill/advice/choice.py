"""Which settings are tried, and which one is recommended.

Settings are tried on the first part of the log; the one chosen is then played on the rest. A game that is
played once cannot rely on averages, so a setting is scored by the mean over the worse half of its replays;
one of agents alone by the recorded order itself where that was worse. The one recommended is the cheapest,
and among equals the one with the largest constant, of those whose paired interval against the best ends
within a stated margin. Cooperation needs more: its interval against agents alone must end below zero on the
first part, it must not have done worse in the recorded order, and neither the rest nor the whole log in its
own order may speak against it. Where that fails, agents stay alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rumormill.advice.replay import Replayed, Stage
from rumormill.advice.settings import (
    ALONE,
    IN_GROUPS,
    SHARING,
    TOGETHER,
    ZETAS,
    Setting,
    has_lemma,
)
from rumormill.arms.objective import sign_of
from rumormill.stats.bootstrap import Interval

# Where the last constant tried is the best, the next of these is tried too.
LADDER = (0.001, 0.003, 0.01, *ZETAS, 3.0, 10.0)
# For being cheaper or more careful, a setting may lose so much more, as a share of what agents alone lose.
MARGIN = 0.05
# The final is between so many ways, each with so many larger constants too.
WAYS, CAREFUL = 2, 2
RESTARTS = (2, 4, 8)
LEAST_RESTART = 20


@dataclass(frozen=True)
class Choice:
    """What was found on the first part, and what the rest says about it."""

    best: Replayed
    chosen: Replayed
    alone: Replayed
    finals: tuple[Replayed, ...]
    excess: dict[Setting, Interval]
    """Loss per request above the best's."""
    on_rest: dict[Setting, Replayed]
    against_alone: Interval
    """Loss of the chosen above that of agents alone, on the rest."""
    paid_against_alone: Interval
    """The same of what was really paid: positive is worse."""
    sharing: tuple[Setting, Interval] | None
    """The best setting that cooperates, and its loss above that of agents alone on the first part."""
    rejected: Setting | None
    """The setting that looked best and did worse than agents alone on the rest or on the whole."""
    at_edge: bool
    """Whether the constant is the last one that there was to try."""
    restart: tuple[int, Interval] | None
    """In a log that drifts: starting anew every so many rounds loses less, by so much."""


def explore(stage: Stage, estimators: Sequence[str], light: bool) -> dict[str, list[Replayed]]:
    """Estimator and ζ for agents alone, together and in groups; then policies and γ; then a final."""
    allowed = [name for name in estimators if light or has_lemma(name)]
    kinds = {ALONE: ("robust", 0, TOGETHER)}
    for name in (TOGETHER, IN_GROUPS):
        network = stage.networks.get(name)
        if network is not None and network.n_edges:
            kinds[name] = ("decentralized", max(1, math.ceil(network.diameter / 2)), name)
    first = {
        kind: [Setting(*probe[:2], name, zeta, probe[2]) for name in allowed for zeta in ZETAS]
        for kind, probe in kinds.items()
    }
    stage.play([setting for each in first.values() for setting in each], look=True)
    for kind in kinds:
        _extend(stage, kind)
    more = [setting for kind in kinds if kind != ALONE for setting in _others(stage, kind)]
    stage.play(more, look=True)
    for kind in kinds:
        _extend(stage, kind)
    return {kind: stage.play(_finalists(_ranked(stage, kind))) for kind in kinds}


def kind_of(setting: Setting) -> str:
    """Alone, all together, or in groups."""
    return setting.network if setting.cooperates else ALONE


def _ranked(stage: Stage, kind: str) -> list[Replayed]:
    return sorted(
        (each for each in stage.played.values() if kind_of(each.setting) == kind), key=lambda each: each.score
    )


def _finalists(ranked: Sequence[Replayed]) -> list[Setting]:
    """The best ways, and the best that send less, each with several constants: few logs do not tell those."""
    ways: dict[Setting, Replayed] = {}
    for each in ranked:
        same = [
            one for one in ways.values() if (one.loss == each.loss).all() and one.messages <= each.messages
        ]
        if (
            not same
        ):  # policies may come to the same thing, such as all of them where everybody hears everybody
            ways.setdefault(replace(each.setting, zeta=0.0), each)
    leaders = list(ways.values())
    found, least = leaders[:WAYS], min(each.messages for each in leaders[:WAYS])
    for each in leaders[WAYS:]:
        if each.messages < least and each.score <= 2 * ranked[0].score:
            found.append(each)
            least = each.messages
    return [setting for each in found for setting in _with_constants(each.setting)]


def _with_constants(setting: Setting) -> list[Setting]:
    place = LADDER.index(setting.zeta)
    return [replace(setting, zeta=zeta) for zeta in LADDER[place : place + CAREFUL + 1]]


def _others(stage: Stage, kind: str) -> list[Setting]:
    """Every policy and reach, with the two best means of the kind."""
    diameter = stage.networks[kind].diameter
    means: dict[str, float] = {}
    for each in _ranked(stage, kind):
        means.setdefault(each.setting.estimator, each.setting.zeta)
    return [
        Setting(policy, gamma, *pair, kind)
        for pair in list(means.items())[:2]
        for gamma in sorted({1, max(1, math.ceil(diameter / 2)), max(1, diameter)})
        for policy in SHARING
    ]


def _extend(stage: Stage, kind: str) -> None:
    """While the best constant of a kind has a neighbour that was not tried with it, try that."""
    for _ in LADDER:
        leader = _ranked(stage, kind)[0].setting
        place = LADDER.index(leader.zeta)
        beside = [replace(leader, zeta=zeta) for zeta in LADDER[max(0, place - 1) : place + 2]]
        if all(setting in stage.played for setting in beside):
            return
        stage.play(beside, look=True)


def choose(first: Stage, rest: Stage, whole: Stage, finals: dict[str, list[Replayed]]) -> Choice:
    """The cheapest and most careful that is not worse than the best, if it surely beats agents alone."""
    every = sorted((each for kind in finals.values() for each in kind), key=lambda each: each.score)
    lone = min(finals[ALONE], key=lambda each: each.score)
    margin = MARGIN * lone.mean
    alone = _simplest(first, finals[ALONE], lone, margin)
    against = {each.setting: first.excess(each, alone) for each in every if each.setting.cooperates}
    allowed = [
        each
        for each in every
        if each.setting not in against
        or (against[each.setting].high <= 0 and each.recorded <= alone.recorded + margin)
    ]
    best = allowed[0]
    liked = _simplest(first, allowed, best, margin)
    chosen, lone = rest.play([liked.setting, alone.setting])
    rejected = None
    if liked.setting.cooperates and (_worse(rest, chosen, lone) or _worse_in_order(whole, chosen, lone)):
        rejected, liked, chosen = liked.setting, alone, lone
    return Choice(
        best,
        liked,
        alone,
        tuple(every),
        {each.setting: first.excess(each, best) for each in every},
        dict(rest.played),
        rest.excess(chosen, lone),
        rest.excess(chosen, lone, paid=True),
        next(iter(against.items()), None),
        rejected,
        liked.setting.zeta in (LADDER[0], LADDER[-1]),
        _restart(first, liked) if first.drifts else None,
    )


def _simplest(stage: Stage, several: Iterable[Replayed], best: Replayed, margin: float) -> Replayed:
    """The cheapest that is not worse than the best within the margin; then the largest constant.

    What exploring costs shows in every replay, how often a group gets stuck for want of it only in many.
    """
    near = [
        each
        for each in several
        if each is best
        or (
            stage.excess(each, best).high <= margin
            and (each.setting.cooperates or each.recorded <= best.score + margin)
        )
    ]
    return min(near, key=lambda each: (each.messages, each.wire_bytes, -each.setting.zeta, each.score))


def _worse(rest: Stage, chosen: Replayed, alone: Replayed) -> bool:
    """Whether the rest of the log shows a setting to be worse than agents alone."""
    loss, paid = rest.excess(chosen, alone), rest.excess(chosen, alone, paid=True)
    return loss.low > 0 or paid.low > 0 or (loss.estimate > 0 and paid.estimate > 0)


def _worse_in_order(whole: Stage, chosen: Replayed, alone: Replayed) -> bool:
    """Whether a setting lost and paid more than agents alone on the whole log in its own order."""
    (loss, paid), (lost, spent) = whole.in_order(chosen.setting), whole.in_order(alone.setting)
    return loss > lost and sign_of(whole.objective) * (paid - spent) < 0


def _restart(stage: Stage, chosen: Replayed) -> tuple[int, Interval] | None:
    """The best number of rounds after which to start anew, if that surely helps."""
    lengths = [stage.rounds // part for part in RESTARTS if stage.rounds // part >= LEAST_RESTART]
    tried = stage.play([replace(chosen.setting, restart=length) for length in lengths])
    gains = [(stage.excess(each, chosen), length) for each, length in zip(tried, lengths, strict=True)]
    sure = [(gain.estimate, length, gain) for gain, length in gains if gain.high < 0]
    return min(sure)[1:] if sure else None
