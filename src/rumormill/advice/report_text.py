"""Advice on a log as data and as text: a sentence and a number for every check, then the recommendation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rumormill.advice.baselines import Baseline, Gain
from rumormill.advice.model_checks import ModelChecks
from rumormill.advice.model_checks.homogeneity import PERMUTATIONS, group_numbers
from rumormill.advice.problem import IN_GROUPS, KEPT, LEVELS, TOGETHER, Candidate, Outcome, restricted
from rumormill.advice.reading.log import Log
from rumormill.advice.replay import Knowledge, ReplayOutcome
from rumormill.advice.reward_table import RewardTable
from rumormill.advice.search import LADDER, MARGIN, Recommendation, Start
from rumormill.graphs import Network
from rumormill.policies import Prior
from rumormill.stats import Interval
from rumormill.text import plural

MOST_NAMES = 6
# What is shown of a candidate.
SETTING = "policy", "gamma", "estimator", "zeta", "network"
# A kept arm does as well if its outcome differs by no more than this share.
AS_WELL = 0.02


@dataclass(frozen=True)
class LogAdvice:
    """The recommendation for a log with everything it is based on."""

    log: Log
    table: RewardTable
    network: Network
    model: ModelChecks
    choice: Recommendation
    baselines: tuple[Baseline, ...]
    gain: Gain
    known: Knowledge
    """What the whole log knows of the arms."""
    groups: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]
    rounds: tuple[int, int]
    """Rounds of the first part and of the rest."""
    tried: int
    seed: int
    losses: dict[Candidate, ReplayOutcome]

    @property
    def start(self) -> Start:
        """Warm or cold, or fixed arms."""
        assert self.choice.start is not None
        return self.choice.start

    @property
    def chosen(self) -> Candidate:
        """The recommended candidate."""
        return self.start.chosen.candidate

    @property
    def setting(self) -> Candidate:
        """The recommended setting of agents that learn: `chosen`, unless that is to keep an arm."""
        return self.start.learner.candidate

    @property
    def prior(self) -> Prior | None:
        """What the agents of `setting` are born with: what the whole log knows; None for a cold start."""
        return self.known.prior_of(self.setting)

    @property
    def names(self) -> Sequence[str]:
        """Of all agents."""
        return self.log.agents or [f"node{v}" for v in range(self.network.n_agents)]

    @property
    def levels(self) -> dict[str, dict[str, float]]:
        """The offsets or scales of every agent of `setting`, by name, to 8 digits, under what they are."""
        found = {key: getattr(self.known.levels, key).tolist() for key in self.setting.levels}
        return {
            key: {name: float(f"{value:.8g}") for name, value in zip(self.names, values, strict=True)}
            for key, values in found.items()
        }

    @property
    def networks(self) -> dict[str, Network]:
        """The networks by the name a candidate has for them; groups are those of the whole log."""
        groups = group_numbers(self.groups, self.network.n_agents)
        return {TOGETHER: self.network, IN_GROUPS: restricted(self.network, groups)}

    def rows(self) -> list[dict[str, Any]]:
        """Every candidate of the final, best score first."""
        return [self._row(each, self.choice.excess[each.candidate]) for each in self.choice.finals]

    def _row(self, each: Outcome, worse: Interval) -> dict[str, Any]:
        """One setting that learns."""
        return {
            "setting": str(each.candidate),
            **{key: getattr(each.candidate, key) for key in SETTING},
            **{key: key in each.candidate.levels for key in LEVELS},
            "loss": each.mean,
            "loss_in_recorded_order": each.recorded,
            "score": each.score,
            "worse": worse.estimate,
            "worse_low": worse.low,
            "worse_high": worse.high,
            "messages_per_round": each.messages,
            "bytes_per_round": each.wire_bytes,
            "recommended": replace(each.candidate, warm=False) == replace(self.setting, warm=False),
            "lemma": each.candidate.covered(self.model.moments),
        }

    def candidates(self) -> list[dict[str, Any]]:
        """How agents may start: cold, warm, or with an arm that they keep; best score first."""
        return [
            {
                **self._row(each, self.start.above[each.candidate]),
                "kind": each.candidate.kind,
                "warm": each.candidate.warm,
                "outcome": float(each.paid.mean()),
                "recommended": each.candidate == self.chosen,
            }
            for each in self.start.ways
        ]

    @property
    def kept_arms(self) -> dict[str, str] | None:
        """The arm that each agent keeps, where that is recommended."""
        if not self.chosen.fixed:
            return None
        kept = zip(self.names, self.known.best_arms(self.chosen), strict=True)
        return {name: self.log.arms[arm] for name, arm in kept}

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        log, choice, rows = self.log, self.choice, self.rows()
        mine = self._row(self.start.learner, self.start.above[self.setting])
        prior = self.prior
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
            "model": self.model.as_dict(log.arms, log.agents),
            "failures": self.model.failures.as_dict(log.arms, log.agents),
            "findings": [vars(finding) for finding in findings(self)],
            "recommendation": {
                **mine,
                "setting": str(self.chosen),
                "kind": self.chosen.kind,
                "code": self.code,
                "cooperate": self.chosen.cooperates,
                "warm": prior is not None,
                "prior": None if prior is None else prior.plain(),
                **{key: self.levels.get(key) for key in LEVELS},
                "arms": self.kept_arms,
            },
            "candidates": self.candidates(),
            "gain": vars(self.gain),
            "on_the_rest": {
                "lines": [line.row() for line in self.baselines],
                "loss_above_alone": vars(choice.against_alone),
                "paid_above_alone": vars(choice.paid_against_alone),
                "rejected": None if choice.rejected is None else str(choice.rejected),
            },
            "headline": headline(self),
            "advice": recommendation(self),
            "notes": list(self.notes),
            "settings": rows,
            "tried": self.tried,
            "seed": self.seed,
        }

    @property
    def code(self) -> str:
        """The recommended policy as a Python expression; where an arm is kept, the best that learns."""
        return self.setting.code(self.model.moments)


@dataclass(frozen=True)
class Finding:
    """One check of the model."""

    check: str
    verdict: str
    number: str
    sentence: str
    alarm: bool = False
    """Whether the model fails here: said before the advice."""


def asked(finding: Finding) -> str:
    """The check with its verdict."""
    return f"{finding.check}{'' if finding.check.endswith('?') else ':'} {finding.verdict}"


def findings(advice: LogAdvice) -> list[Finding]:
    """Every check of the model, most important first; missing outcomes and levels where there are any."""
    return [*_failures(advice), *checks(advice), *_levels(advice)]


def checks(advice: LogAdvice) -> list[Finding]:
    """The five checks that every log has, in the order of the figure."""
    return [_homogeneity(advice), _drift(advice), _tails(advice), _dependence(advice), _enough(advice)]


def headline(advice: LogAdvice) -> str:
    """The objective, the best arm, and the gaps of the others."""
    log, known = advice.log, advice.model.enough
    means = advice.model.means.tolist()
    gaps = [
        f"{log.arms[k]} {log.amount(abs(mean - means[known.best]))}"
        for k, mean in enumerate(means)
        if k != known.best
    ]
    lead = ", ".join(gaps[:MOST_NAMES]) + (", ..." if len(gaps) > MOST_NAMES else "")
    same, own = advice.model.homogeneity, ""
    if same.best_differs:
        shares = sorted(zip(same.groups, same.best_of_group, strict=True), key=lambda each: -len(each[0]))
        named = [f"{log.arms[best]} for {len(group)}" for group, best in shares]
        more = ", ..." if len(named) > MOST_NAMES else ""
        own = f"The best arm depends on the agent: {', '.join(named[:MOST_NAMES])}{more}. "
    unsure = advice.model.failures.hides_order(known.best)
    role = "looks best" if unsure else "is the best arm"
    return (
        f"{log.better.capitalize()} is better ({log.objective}). {own}Over all agents {log.arms[known.best]} "
        f"{role}, {log.amount(means[known.best])} on average; the others are worse per request by: "
        f"{lead}."
    )


def recommendation(advice: LogAdvice) -> list[str]:
    """The advice as sentences: failed checks, the recommendation, its gain, reasons, limits."""
    return [
        *alarms(advice),
        *_instead(advice),
        _recommended(advice),
        gain_sentence(advice),
        *_why(advice),
        *_limits(advice),
    ]


def alarms(advice: LogAdvice) -> list[str]:
    """Failed checks of the model; they come first."""
    return [finding.sentence for finding in findings(advice) if finding.alarm]


def basis(advice: LogAdvice) -> str:
    """The part of the log that candidates were compared on."""
    return "the whole log" if advice.model.drift.drifts else "the first part"


def reported_on(advice: LogAdvice) -> str:
    """The games that outcomes are measured in."""
    return f"games of {sum(advice.rounds):,} rounds resampled from the last {advice.rounds[1]:,} of the log"


# --- checks ---------------------------------------------------------------------------------------------


def _p(value: float) -> str:
    """A p-value; the smallest that a permutation test can give as a bound."""
    return f"p ≤ {1 / (1 + PERMUTATIONS):.3f}" if value <= 1.01 / (1 + PERMUTATIONS) else f"p = {value:.2g}"


def _failures(advice: LogAdvice) -> list[Finding]:
    """The findings on missing outcomes and on values cut off at a limit."""
    failures, log, found = advice.model.failures, advice.log, []
    shares, count = failures.shares, int(failures.missing.sum())
    most, least = int(shares.argmax()), int(shares.argmin())
    if count:
        span = f"{shares[least]:.1%} to {shares[most]:.1%}"
        text = f"Missing outcomes: {count:,} of {int(failures.tries.sum()):,}, "
        text += (
            f"{shares[most]:.1%} of {log.arms[most]} and {shares[least]:.1%} of {log.arms[least]}; "
            if failures.differ
            else "no arm surely more than others; "
        )
        if failures.cost is not None:
            verdict, text = "counted", f"{text}each counts as {log.amount(failures.cost)}."
        elif failures.differ:
            verdict = "differ"
            text += "means leave them out. If they are failures, give --failure-cost X (or timeout)."
            if failures.hides_order(advice.model.enough.best):
                text += " Until then the log cannot tell the best arm."
        else:
            verdict, text = "no difference", f"{text}they are left out."
        alarm = failures.differ and failures.cost is None
        found.append(Finding("failures?", verdict, span, text, alarm=alarm))
    if failures.limit is not None:
        cut, best = failures.limit_shares, advice.model.enough.best
        worst = int(cut.argmax())
        hidden = bool(cut[best] > cut.min())
        text = (
            f"{plural(int(failures.at_limit.sum()), 'value')} are exactly {log.amount(failures.limit)}, the "
            f"largest: they look cut off there, {cut[worst]:.1%} of {log.arms[worst]} and {cut[best]:.1%} of "
            f"{log.arms[best]}. Means count them as that, too low. "
        )
        if hidden:
            text += "So another arm may be best."
        elif cut[best] > 0:
            text += f"{log.arms[best]} is cut off least: it stays best if what is beyond is alike for all."
        else:
            text += f"{log.arms[best]} is never cut off: it stays best."
        number = f"{cut.min():.1%} to {cut.max():.1%}"
        found.append(Finding("cut off?", "yes", number, text, alarm=hidden))
    return found


def _homogeneity(advice: LogAdvice) -> Finding:
    """The finding on homogeneity."""
    same, log = advice.model.homogeneity, advice.log
    if not same.tested:
        text = "The log names one agent only: there is no other agent to compare with."
        if log.agents is None:
            text = (
                "The log does not say who measured what: that all face the same arms is assumed, not tested."
            )
        return Finding("same arms for all agents?", "not tested", "–", text)
    worth = f"knowing one's own best arm is worth {log.amount(max(same.value, 0.0))} per request"
    if not same.differs:
        text = (
            f"All {log.n_agents} agents face the same arms, as far as the log can tell "
            f"({_p(same.p_value)}); {worth}."
        )
        return Finding("same arms for all agents?", "yes", _p(same.p_value), text)
    if not same.best_differs:
        text = (
            f"The arms are not the same for all agents ({_p(same.p_value)}), but the best arm is: "
            f"{log.arms[same.best_of_group[0]]}."
        )
        return Finding("same arms for all agents?", "no, but one best arm", _p(same.p_value), text)
    text = (
        f"The arms are not the same for all agents ({_p(same.p_value)}): there are {len(same.groups)} groups "
        f"of agents with different best arms, and {worth}."
    )
    return Finding("same arms for all agents?", "no", _p(same.p_value), text, alarm=True)


def _levels(advice: LogAdvice) -> list[Finding]:
    """The finding on agents whose outcomes differ with every arm alike, where they do."""
    known, log, setting = advice.known.levels, advice.log, advice.setting
    shown = setting.levels or known.tried
    if not shown or log.agents is None:
        return []
    scaled, values = shown == ("scales",), getattr(known, shown[0])
    low, high = (int(pick(values)) for pick in (np.argmin, np.argmax))
    ends = [f"{values[v]:.3g} times" if scaled else log.amount(values[v]) for v in (low, high)]
    if "offsets" in setting.levels:
        what = "each agent takes its own offset off before it learns and sends, which proved itself here"
    elif setting.levels:
        what = "each agent divides by its own scale before it learns and sends, which proved itself here"
    elif setting.cooperates:
        what = "to remove that before sharing did not prove itself here"
    else:
        what = "agents alone need not remove that"
    text = (
        f"Some agents have other outcomes with every arm alike: {ends[0]} ({log.agents[low]}) to {ends[1]} "
        f"({log.agents[high]}) {'those of' if scaled else 'against'} all agents; {what}."
    )
    return [Finding("same level for all agents?", "no", f"{ends[0]} to {ends[1]}", text)]


def _drift(advice: LogAdvice) -> Finding:
    """The finding on drift."""
    drift, log = advice.model.drift, advice.log
    if not drift.drifts:
        text = f"Nothing changes over time, as far as the log can tell ({_p(drift.p_value)})."
        return Finding("drift?", "no", _p(drift.p_value), text)
    when = f"most of all at {100 * drift.at:.0f} % of the log"
    if drift.period is not None:
        when = f"in seasons of about {100 * drift.period:.0f} % of the log"
    text = f"The arms change over time ({_p(drift.p_value)}), {when}; "
    if drift.best_changes:
        names = list(dict.fromkeys(log.arms[k] for k in drift.segment_best))
        text += f"the best arm changes with them ({' → '.join(names[:MOST_NAMES])}), "
        if drift.value > 0:
            text += f"and knowing the best of the moment is worth {log.amount(drift.value)} per request."
        else:
            text += "but to follow it over all agents would gain nothing."
    elif len(set(drift.segment_best)) == 1:
        text += "the best arm over all agents stays the same."
    else:
        names = [log.arms[k] for k in drift.segment_best]
        text += f"by sixths of the log the best arm is {', '.join(names)}, by less than is certain."
    return Finding("drift?", "yes", _p(drift.p_value), text, alarm=True)


def _tails(advice: LogAdvice) -> Finding:
    """The finding on tails."""
    tails, arms = advice.model.tails, advice.log.arms
    worst = min(range(len(tails)), key=lambda k: tails[k].low)
    tail = tails[worst]
    low = math.floor(100 * tail.low) / 100 if math.isfinite(tail.low) else tail.low
    band = f"{low:g} to {tail.high:.3g}" if math.isfinite(tail.high) else f"{low:g} or more"
    if not math.isfinite(tail.low):
        band = "no tail is seen"
    if advice.model.light:
        text = f"Every tail is light; the heaviest is that of {arms[worst]} ({band})."
        return Finding("tails", "light", band, text)
    verdict = "heavy" if any(each.verdict == "heavy" for each in tails) else "cannot tell"
    said = tail.words.removeprefix("heavy: ").removeprefix("cannot tell: ")
    text = f"The heaviest tail is that of {arms[worst]}, index {band}: {said}."
    return Finding("tails", verdict, band, text)


def _dependence(advice: LogAdvice) -> Finding:
    """The finding on dependence."""
    near = advice.model.dependence
    parts = []
    if near.remembers:
        way = "resembles" if near.lag_one > 0 else "tends to be on the other side of"
        parts.append(f"a reward {way} the last one of its agent and arm (correlation {near.lag_one:+.2f})")
    if near.shocks:
        parts.append(f"{100 * near.common:.0f} % of the variance is a shock that hits all agents at once")
    last, shock = f"{near.lag_one:+.2f}", f"{100 * max(near.common, 0.0):.0f} %"
    number = f"{last}, {shock}"
    if not parts:
        text = f"Rewards depend neither on the last ones ({last}) nor on a common shock ({shock})."
        return Finding("dependence", "none seen", number, text)
    text = " and ".join(parts)
    return Finding("dependence", "some", number, f"{text[0].upper()}{text[1:]}; replays keep both.")


def _enough(advice: LogAdvice) -> Finding:
    """The finding on the amount of data."""
    known, log = advice.model.enough, advice.log
    number = f"{log.amount(known.gap)} ± {log.amount(2 * known.error)}"
    pair = f"{log.arms[known.best]} and {log.arms[known.second]}"
    if known.is_enough:
        text = f"The log tells {pair} apart: they differ by {number} over all agents."
        return Finding("enough data?", "yes", number, text)
    text = f"The log does not tell {pair} apart: they differ by {number} over all agents."
    if not advice.model.homogeneity.best_differs:
        text += f" About {math.ceil(min(known.times_more, 999))} times as much would do."
    return Finding("enough data?", "no", number, text)


# --- advice ---------------------------------------------------------------------------------------------


def _instead(advice: LogAdvice) -> list[str]:
    """What to do where a check of the model fails."""
    text = []
    if advice.model.homogeneity.best_differs:
        text.append(
            "Sharing what all measured would mix different arms under one name. What helps: cooperate within "
            "the groups, or not at all."
        )
    if advice.model.drift.drifts:
        text.append(
            "What was learned gets old: come back with newer logs, and ask with --like whether the setting "
            "still holds."
        )
        if advice.choice.restart is not None:
            length, gain = advice.choice.restart
            text.append(
                f"To start anew every {length:,} rounds would lose {advice.log.amount(-gain.estimate)} less "
                f"per request than to go on ({advice.log.amount(-gain.high)} to "
                f"{advice.log.amount(-gain.low)}, 95 %); no policy here does that by itself."
            )
    return text


def in_short(advice: LogAdvice) -> str:
    """The advice without its constants."""
    chosen = advice.chosen
    if chosen.fixed:
        arms = sorted(set((advice.kept_arms or {}).values()))
        if len(arms) == 1:
            return f"Keep {arms[0]} for all agents, without messages"
        return f"Keep {KEPT[chosen.network]}, without messages"
    start = ", and start from what the log knows" if chosen.warm else ""
    if not chosen.cooperates:
        return f"Agents on their own, without messages{start}"
    if chosen.network == IN_GROUPS:
        return f"Cooperate within {plural(len(advice.groups), 'group')}{start}"
    return f"Cooperate among all {advice.network.n_agents} agents{start}"


def _recommended(advice: LogAdvice) -> str:
    """The recommended candidate as a sentence."""
    short = in_short(advice)
    return f"Recommended: {short[0].lower()}{short[1:]} ({advice.chosen})."


def gain_sentence(advice: LogAdvice) -> str:
    """The one gain, with its interval and what it is."""
    gain, amount = advice.gain, advice.log.amount
    if advice.chosen == advice.start.cold.candidate:
        return "That is the setting that the others are compared with: none of them surely gains on this log."
    verb, sign = ("gained", 1.0) if gain.value >= 0 else ("lost", -1.0)
    low, high = sorted((sign * gain.low, sign * gain.high))
    return (
        f"On this log it would have {verb} {amount(sign * gain.value)} per request ({amount(low)} to "
        f"{amount(high)}, 95 %) over agents alone without a prior, in {reported_on(advice)}. "
        "That is no forecast."
    )


def _why(advice: LogAdvice) -> list[str]:
    """Why this candidate: cooperation, the constant, the start, and what fixed arms would have done."""
    choice, log, chosen = advice.choice, advice.log, replace(advice.setting, warm=False)
    one, text = "the one that learns" if advice.chosen.fixed else "the recommended one", []
    if choice.rejected is not None:
        text.append(
            f"{choice.rejected} looked best on {basis(advice)}, but did worse than agents alone on the rest, "
            "or on the whole log in its own order."
        )
    elif choice.sharing is not None and not choice.best.candidate.cooperates:
        setting, more = choice.sharing
        text.append(
            f"No setting that cooperates is surely better on {basis(advice)}: the best of them, {setting}, "
            f"loses {compared(advice, more)} than agents alone."
        )
    elif choice.best.candidate == chosen:
        text.append(f"Of all settings tried {one} did best, by the worse half of its replays.")
    elif chosen == choice.chosen.candidate:
        excess = choice.excess[chosen]
        text.append(
            f"{choice.best.candidate} did best (it lost {log.amount(choice.best.mean)} on average); {one} "
            f"loses at most {log.amount(max(excess.high, 0.0))} more (95 %), less than {100 * MARGIN:.0f} % "
            "of what agents alone lose, and is cheaper or explores more."
        )
    text += [*_messages(advice), *_start(advice)]
    return [*_fixed(advice), *text] if advice.chosen.fixed else [*text, *_fixed(advice)]


def _subject(advice: LogAdvice) -> str:
    """What sentences about the setting that learns begin with: an arm may be recommended instead."""
    return "The setting that learns" if advice.chosen.fixed else "It"


def _more(advice: LogAdvice, one: Outcome, other: Outcome) -> float:
    """How much worse the outcome of the first is, per request: positive is worse."""
    return -advice.log.sign * float(one.paid.mean() - other.paid.mean())


def _by(advice: LogAdvice, more: float) -> str:
    """An amount in the direction of worse or better."""
    amount = f"{advice.log.amount(abs(more))} per request"
    return f"{amount} {'worse' if more > 0 else 'better'}" if more else "no different"


def _messages(advice: LogAdvice) -> list[str]:
    """What messages cost, or would buy."""
    start, liked = advice.start, advice.choice.chosen.candidate
    if advice.setting.cooperates:
        return [f"{_subject(advice)} takes {start.learner.messages:,.0f} messages a round."]
    if not liked.cooperates:
        return []
    sharing = next(each for each in start.ways if each.candidate.cooperates)
    more = _more(advice, sharing, start.learner)
    return [
        f"{sharing.candidate} gained in cold starts; after this log it would have been {_by(advice, more)}, "
        f"with {sharing.messages:,.0f} messages a round."
    ]


def _start(advice: LogAdvice) -> list[str]:
    """What the warm start was worth."""
    start, setting = advice.start, advice.setting
    if setting.estimator is None:
        return [f"{_subject(advice)} takes no prior: agents start from nothing."]
    if start.dropped is not None:
        more = compared(advice, start.dropped)
        return [f"To start from what the first part knows loses {more}: agents start from nothing."]
    same = replace(setting, warm=False, zeta=None)
    cold = next(e for e in start.ways if replace(e.candidate, zeta=None) == same)
    worse = _by(advice, _more(advice, cold, start.learner))
    return [f"The same setting without what the log knows would have been {worse}."]


def _fixed(advice: LogAdvice) -> list[str]:
    """Whether keeping an arm does as well."""
    start, kept = advice.start, advice.start.best_fixed
    more, arm = _more(advice, kept, start.learner), KEPT[kept.candidate.network]
    if advice.chosen.fixed:
        return [
            f"The best setting that learns, {advice.setting}, would have been {_by(advice, -more)}. A kept "
            "arm follows no change: come back with newer logs."
        ]
    if abs(more) <= AS_WELL * abs(float(start.learner.paid.mean())):
        return [
            f"To keep {arm} does as well on this log ({_by(advice, more)}): learning on buys "
            "safety against change, and no more."
        ]
    why = "" if more > 0 else "; it follows no change, and is recommended only where it surely gains 5 %"
    return [f"To keep {arm} would have been {_by(advice, more)}{why}."]


def compared(advice: LogAdvice, more: Interval) -> str:
    """How much more or less, with its interval in the same direction."""
    amount = advice.log.amount
    if more.estimate > 0:
        return f"{amount(more.estimate)} more ({amount(more.low)} to {amount(more.high)}, 95 %)"
    return f"{amount(-more.estimate)} less ({amount(-more.high)} to {amount(-more.low)}, 95 %)"


def _limits(advice: LogAdvice) -> list[str]:
    """Limits: whether a lemma covers ζ, whether ζ is at the edge of the ladder."""
    text = []
    if advice.setting.zeta is None:
        return [f"{_subject(advice)} has no constant to choose."]
    if advice.setting.covered(advice.model.moments):
        text.append("A lemma covers this constant for the moments assumed.")
    else:
        text.append(
            f"No lemma covers ζ = {advice.setting.zeta:g}: the setting is measured on this log, nothing is "
            "promised."
        )
    if advice.setting.zeta in (LADDER[0], LADDER[-1]):
        text.append(
            f"ζ = {advice.setting.zeta:g} is the last constant that was tried: a further one may be better."
        )
    return text


def group_lines(advice: LogAdvice) -> list[str]:
    """The groups, one line each."""
    same = advice.model.homogeneity
    if not same.best_differs:
        return []
    names = advice.log.agents or ()
    lines = []
    for number, (group, best) in enumerate(zip(same.groups, same.best_of_group, strict=True), 1):
        more = ", ..." if len(group) > MOST_NAMES else ""
        shown = ", ".join(names[v] for v in group[:MOST_NAMES]) + more
        lines.append(f"group {number}: best {advice.log.arms[best]}, {plural(len(group), 'agent')}: {shown}")
    return lines


def what_could_be_wrong(advice: LogAdvice) -> list[str]:
    """For readers in a hurry: alarms, and what the numbers do not promise."""
    text = list(alarms(advice))
    if not advice.model.enough.is_enough:
        text += [each.sentence for each in findings(advice) if each.check == "enough data?"]
    gain = advice.gain
    if gain.low < 0 < gain.high:
        text.append("The interval of the gain has zero in it: there may be none.")
    if advice.table.kind != "full":
        text.append(
            "The log does not say what the arms that were not chosen would have given: values of about the "
            "same time stand in, which is wrong if something unrecorded moved both choice and outcome."
        )
    text.append(
        "The numbers describe this log. If the arms change, they do not hold: ask again with new logs."
    )
    return text


def everything(advice: LogAdvice) -> Sequence[str]:
    """All sentences."""
    return [headline(advice), *(f.sentence for f in findings(advice)), *recommendation(advice), *advice.notes]
