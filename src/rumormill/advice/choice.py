"""Which settings are tried, and which one is recommended.

Settings are tried on the first part of the log and reported on the rest. The one recommended is the cheapest
among those whose paired interval against the best ends within a stated margin; and never one that cooperates
and does worse than agents alone on the part of the log it was not chosen on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rumormill.advice.replays import Interval, Replayed, Stage
from rumormill.advice.settings import ALONE, IN_GROUPS, TOGETHER, Setting, has_lemma

ZETAS = (0.03, 0.1, 0.3, 1.0)
# Where the last constant tried is the best, the next of these is tried too.
LADDER = (0.001, 0.003, 0.01, *ZETAS, 3.0, 10.0)
# Catoni's mean solves an equation over all samples every round: far too slow to be tried unasked.
QUICK_ESTIMATORS = ("trimmed", "median-of-means", "empirical")
SHARING = ("decentralized", "centralized", "kmp")
# A setting may lose so much more than the best, as a share of what the best loses, for being cheaper.
MARGIN = 0.1
# How many logs a first look takes, and how many settings of each kind come into the final.
LOOK, FINALISTS, CAREFUL = 4, 4, 2
RESTARTS = (2, 4, 8)


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
    rejected: tuple[Setting, ...]
    """Settings that looked better at first and did worse than agents alone on the rest."""
    at_edge: bool
    """Whether the constant is the last one that there was to try."""


def explore(stage: Stage, estimators: Sequence[str], light: bool, drifts: bool) -> dict[str, list[Replayed]]:
    """Estimator and ζ for agents alone, together and in groups; then policies, γ, restarts; a final."""
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
    stage.play([setting for each in first.values() for setting in each], LOOK, 1)
    for kind in kinds:
        _extend(stage, kind)
    more = [setting for kind in kinds if kind != ALONE for setting in _others(stage, kind)]
    stage.play(more, LOOK, 1)
    for kind in kinds:
        _extend(stage, kind)
    if drifts:
        leaders = [_ranked(stage, kind)[0].setting for kind in kinds]
        lengths = [stage.rounds // part for part in RESTARTS if stage.rounds // part >= 20]
        stage.play([replace(leader, restart=length) for leader in leaders for length in lengths], LOOK, 1)
    finals = {kind: [each.setting for each in _finalists(_ranked(stage, kind))] for kind in kinds}
    for settings in finals.values():
        settings += [each for each in _more_careful(settings[0]) if each not in settings]
    return {kind: stage.play(settings) for kind, settings in finals.items()}


def kind_of(setting: Setting) -> str:
    """Alone, all together, or in groups."""
    return setting.network if setting.cooperates else ALONE


def _ranked(stage: Stage, kind: str) -> list[Replayed]:
    return sorted(
        (each for each in stage.played.values() if kind_of(each.setting) == kind), key=lambda each: each.score
    )


def _finalists(ranked: Sequence[Replayed]) -> list[Replayed]:
    """The best, and the best that sends less."""
    found, least = list(ranked[:FINALISTS]), min(each.messages for each in ranked[:FINALISTS])
    for each in ranked[FINALISTS:]:
        if each.messages < least and each.score <= 2 * ranked[0].score:
            found.append(each)
            least = each.messages
    return found


def _others(stage: Stage, kind: str) -> list[Setting]:
    """Every policy and reach, with the two best means of the kind."""
    diameter = stage.networks[kind].diameter
    pairs: list[tuple[str, float]] = []
    for each in _ranked(stage, kind):
        if each.setting.estimator not in [name for name, _ in pairs]:
            pairs.append((each.setting.estimator, each.setting.zeta))
    return [
        Setting(policy, gamma, *pair, kind)
        for pair in pairs[:2]
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
        stage.play(beside, LOOK, 1)


def _more_careful(setting: Setting) -> list[Setting]:
    """The same with larger constants: few replays do not show how often a group gets stuck with a bad arm."""
    place = LADDER.index(setting.zeta)
    return [replace(setting, zeta=zeta) for zeta in LADDER[place + 1 : place + 1 + CAREFUL]]


def choose(first: Stage, rest: Stage, finals: dict[str, list[Replayed]], *, best_differs: bool) -> Choice:
    """The cheapest that is not worse than the best within the margin, if the rest of the log agrees."""
    every = sorted((each for kind in finals.values() for each in kind), key=lambda each: each.score)
    alone = min(finals[ALONE], key=lambda each: each.score)
    allowed = [each for each in every if _may_be_chosen(first, each, alone, best_differs)]
    best = allowed[0]
    excess = {each.setting: first.excess(each, best) for each in every}
    excess[best.setting] = Interval(0.0, 0.0, 0.0)
    margin = MARGIN * best.mean
    near = [each for each in allowed if excess[each.setting].high <= margin or each is best]
    near.sort(key=lambda each: (each.messages, each.wire_bytes, each.setting.restart is not None, each.score))
    rejected = []
    for each in [near[0], *(other for other in allowed if other is not near[0])]:
        chosen, lone = rest.play([each.setting, alone.setting])
        if each.setting == alone.setting or not _worse(rest, chosen, lone):
            break
        rejected.append(each.setting)
    return Choice(
        best,
        next(one for one in every if one.setting == chosen.setting),
        alone,
        tuple(every),
        excess,
        dict(rest.played),
        rest.excess(chosen, lone),
        rest.excess(chosen, lone, paid=True),
        tuple(rejected),
        chosen.setting.zeta in (LADDER[0], LADDER[-1]),
    )


def _may_be_chosen(stage: Stage, one: Replayed, alone: Replayed, best_differs: bool) -> bool:
    """Where the best arm differs between agents, all together only if that is surely better than alone."""
    if not best_differs or one.setting.network != TOGETHER or not one.setting.cooperates:
        return True
    return stage.excess(one, alone).high < 0


def _worse(rest: Stage, chosen: Replayed, alone: Replayed) -> bool:
    """Whether the rest of the log shows a setting to be worse than agents alone."""
    loss, paid = rest.excess(chosen, alone), rest.excess(chosen, alone, paid=True)
    return loss.low > 0 or paid.low > 0 or (loss.estimate > 0 and paid.estimate > 0)
