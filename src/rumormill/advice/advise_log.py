"""Advice on a log: test the model, replay settings on the first part, report on the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.advice.baselines import Line, lines_of
from rumormill.advice.choice import Choice, choose, explore
from rumormill.advice.model_checks import Evidence, examine
from rumormill.advice.problem import (
    FIRST,
    for_agents,
    groups_of_first_part,
    network_of,
    restricted,
    supported,
)
from rumormill.advice.reading.log import Log
from rumormill.advice.replay import Replayed, Stage
from rumormill.advice.reward_table import Table, lay_out
from rumormill.advice.settings import (
    IN_GROUPS,
    QUICK_ESTIMATORS,
    TOGETHER,
    Setting,
    code_of,
    has_lemma,
    require_radius,
)
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.seeds import Role, root_seed, stream_seed
from rumormill.text import nearest

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogAdvice:
    """The recommendation with everything it rests on."""

    log: Log
    table: Table
    network: Network
    evidence: Evidence
    choice: Choice
    lines: tuple[Line, ...]
    groups: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]
    rounds: tuple[int, int]
    """Rounds of the first part and of the rest."""
    tried: int
    seed: int
    losses: dict[Setting, Replayed]

    @property
    def chosen(self) -> Setting:
        return self.choice.chosen.setting

    @property
    def networks(self) -> dict[str, Network]:
        """Who may hear whom, by what a setting calls it; groups as the whole log tells them."""
        inside = restricted(self.network, self.evidence.sameness.group_of)
        return {TOGETHER: self.network, IN_GROUPS: inside}

    def rows(self) -> list[dict[str, Any]]:
        """Every setting of the final, best score first."""
        return [
            {
                "setting": str(each.setting),
                "policy": each.setting.policy,
                "gamma": each.setting.gamma,
                "estimator": each.setting.estimator,
                "zeta": each.setting.zeta,
                "network": each.setting.network,
                "loss": each.mean,
                "loss_in_recorded_order": each.recorded,
                "score": each.score,
                "worse": self.choice.excess[each.setting].estimate,
                "worse_low": self.choice.excess[each.setting].low,
                "worse_high": self.choice.excess[each.setting].high,
                "messages_per_round": each.messages,
                "bytes_per_round": each.wire_bytes,
                "recommended": each.setting == self.chosen,
                "lemma": each.setting.covered(self.evidence.moments),
            }
            for each in self.choice.finals
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        from rumormill.advice.report_text import findings, headline, recommendation

        log, choice = self.log, self.choice
        (mine,) = [row for row in self.rows() if row["recommended"]]
        return {
            "source": log.name,
            "objective": log.objective,
            "unit": log.unit,
            "log": {
                "values": len(log.value),
                "agents": log.n_agents if log.agents else None,
                "arms": list(log.arms),
                "recorded": self.table.kind,
                "rounds": self.table.rounds,
                "first_part": self.rounds[0],
                "rest": self.rounds[1],
            },
            "network": {"agents": self.network.n_agents, "links": self.network.n_edges},
            "model": self.evidence.as_dict(log.arms, log.agents),
            "findings": [vars(finding) for finding in findings(self)],
            "recommendation": {**mine, "code": self.code, "cooperate": self.chosen.cooperates},
            "on_the_rest": {
                "lines": [line.row() for line in self.lines],
                "loss_above_alone": vars(choice.against_alone),
                "paid_above_alone": vars(choice.paid_against_alone),
                "rejected": None if choice.rejected is None else str(choice.rejected),
            },
            "headline": headline(self),
            "advice": recommendation(self),
            "notes": list(self.notes),
            "settings": self.rows(),
            "tried": self.tried,
            "seed": self.seed,
        }

    @property
    def code(self) -> str:
        """The recommended policy, to be copied into a program."""
        cls = catalogue.find("policy", self.chosen.policy).__name__
        given = self.chosen.settings(self.evidence.moments).items()
        return f"rm.{cls}({', '.join(f'{name}={code_of(value)}' for name, value in given)})"


def advise_log(
    log: Log,
    network: Network | None = None,
    *,
    seed: int = 0,
    estimators: Sequence[str] = QUICK_ESTIMATORS,
    jobs: int | None = None,
    on_play: Callable[[int], None] = lambda plays: None,
) -> LogAdvice:
    """Recommend a setting for the agents and arms of a log; the same seed gives the same advice."""
    for name in estimators:
        if name not in catalogue.ESTIMATORS:
            raise InputError(f"estimator {name!r} is unknown{nearest(name, catalogue.ESTIMATORS)}")
    require_radius(estimators)
    root = root_seed(seed)
    rng = np.random.default_rng(stream_seed(root, Role.BANDIT))
    table = lay_out(log, rng)
    evidence = examine(table, rng)
    if not evidence.light and not any(has_lemma(name) for name in estimators):
        raise InputError(
            "the empirical mean alone cannot be recommended where variances may be infinite: "
            "give another estimator too"
        )
    table, evidence, notes = supported(table, evidence, rng)
    network = network_of(table, network)
    values = for_agents(table, network.n_agents, rng)
    cut = round(FIRST * table.rounds)
    group_of, groups = groups_of_first_part(table, evidence, values[:cut])
    networks = {TOGETHER: network}
    if len(groups) > 1:
        networks[IN_GROUPS] = restricted(network, group_of)
    drifts = evidence.drift.drifts

    counts = table.recorded.sum(axis=0) if table.log.agents is not None else None

    def stage(part: Array, number: int, count_from: int = 0) -> Stage:
        return Stage(
            part,
            table.log.objective,
            networks,
            evidence.moments,
            group_of,
            drifts=drifts,
            remembers=evidence.dependence.remembers,
            count_from=count_from,
            recorded=None if counts is None else counts * (len(part) / table.rounds),
            seed=stream_seed(root, number),
            jobs=jobs,
            on_play=on_play,
        )

    whole = stage(values, 1)
    if drifts:
        # A part would not show how a setting gets over a change: the whole is played, and the rest counts.
        first, rest = whole, stage(values, 2, cut)
        notes.append(
            "The log drifts: settings were compared on all of it, since a part would not show changes."
        )
    else:
        first, rest = stage(values[:cut], 1), stage(values[cut:], 2)
    choice = choose(first, rest, whole, explore(first, list(dict.fromkeys(estimators)), evidence.light))
    return LogAdvice(
        table.log,
        table,
        network,
        evidence,
        choice,
        tuple(lines_of(table, first, rest, choice, cut)),
        evidence.sameness.groups if evidence.sameness.tested else (tuple(range(network.n_agents)),),
        (*table.log.notes, *table.notes, *notes),
        (cut, table.rounds - cut),
        len(first.played),
        seed,
        first.played,
    )
