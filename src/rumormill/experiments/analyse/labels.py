"""Labels for swept parameters and fault models, the same in terminal, figures and page."""

from __future__ import annotations

from typing import Any

from rumormill.experiments.plan import plan_of
from rumormill.experiments.spec.errors import own_names
from rumormill.experiments.spec.schema import Spec
from rumormill.protocol import Imperfect, World
from rumormill.text import band, plural, setting

Values = dict[str, Any]
"""What every swept parameter is at one sweep point; empty when nothing is swept."""

ANY = "any"
"""A parameter on which something does not depend."""

AXIS_NAMES = {
    "gamma": "γ (hops)",
    "alpha": "tail index α",
    "zeta": "factor ζ",
    "eps": "ε",
    "M": "agents",
    "K": "arms K",
    "gap": "gap Δ",
    "tail": "tail index",
    "channel.p": "share of bundles that arrive, p",
    "channel.delay": "longest delay (rounds)",
    "churn.up": "mean rounds present",
    "churn.down": "mean rounds away",
    "corruption.rate": "share of false messages",
    "byzantine.agents": "liars",
    "byzantine.attack": "attack",
    "network.n": "agents",
    "network.p": "link probability p",
}
VALUE_NAMES = {"er": "Erdős–Rényi", "ba": "Barabási–Albert", "gnutella": "Gnutella", "facebook": "Facebook"}
SYMBOLS = {"gamma": "γ", "alpha": "α", "zeta": "ζ", "eps": "ε", "rho": "ρ", "sigma": "σ", "tau": "τ"}
SHORT = {"channel.p": "p", "channel.delay": "delay", "churn.down": "rounds away", "network.p": "p"}
# Parameters with a limit: named instead of "falls" or "grows".
LIMITS = {("alpha", "low"): "1"}


def in_words(values: Values, between: str = ", ") -> str:
    """A sweep point as a title."""
    return between.join(named(values))


def named(values: Values) -> list[str]:
    """Every parameter of a sweep point with its value: γ = 2."""
    return [f"{symbol(name)} = {value_name(value)}" for name, value in values.items()]


def value_name(value: Any) -> str:
    """What a swept value is called; never a raw key of a shipped spec."""
    return VALUE_NAMES.get(str(value)) or setting(value)


def band_of(row: dict[str, Any]) -> str:
    """The band of a row of a summary; one trial has none."""
    return "one trial: no band" if row["trials"] == 1 else band(row["low"], row["high"])


def in_one_line(constants: dict[str, Any]) -> str:
    """Constants as they were resolved: ζ = 1, ε = 0.765, u = 4.03, …"""
    return ", ".join(f"{symbol(name)} = {setting(value)}" for name, value in constants.items())


def axis_name(parameter: str) -> str:
    """What a swept parameter is called on an axis; never a raw key of a spec."""
    part, _, key = parameter.rpartition(".")
    for known in (parameter, key):
        if known in AXIS_NAMES:
            return AXIS_NAMES[known]
    name = key.replace("_", " ")
    return f"{name} ({part.replace('.', ' ')})" if part and part != "policies" else name


def symbol(parameter: str) -> str:
    """What a swept parameter is called in a sentence; never a raw key of a spec."""
    part, _, key = parameter.rpartition(".")
    if not part:
        return SYMBOLS.get(key, key)
    return SYMBOLS.get(key) or SHORT.get(parameter) or (axis_name(parameter) if part != "policies" else key)


def is_number(value: Any) -> bool:
    """Whether a swept value has a place on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def fault_sentences_of(spec: Spec) -> list[str]:
    """The fault models of a spec; where they differ between sweep points, one sentence says so."""
    if own_names(spec):  # a user's own class is not imported for a sentence
        return []
    found = [fault_sentences(point.world) for point in plan_of(spec).points]
    if all(each == found[0] for each in found):
        return found[0]
    return ["What is lost, late or away differs between the points of the sweep."]


def fault_sentences(world: World) -> list[str]:
    """The fault models of a world, a sentence each."""
    found, channel = [], world.channel
    if isinstance(channel, Imperfect):
        what = "bundle" if channel.per == "link" else "message"
        if channel.p < 1:
            found.append(f"Every {what} is lost with probability {setting(round(1 - channel.p, 12))}.")
        if channel.longest_delay:
            found.append(
                f"Bundles come up to {plural(channel.longest_delay, 'round')} late, "
                f"{setting(round(channel.mean_delay, 3))} in the mean."
            )
    elif not world.messages_arrive:
        found.append(f"What happens to messages is decided by {type(channel).__name__}.")
    if world.churn is not None:
        up, down = setting(world.churn.up), setting(world.churn.down)
        found.append(f"Agents stay for {up} rounds in the mean, then are away for {down}.")
    elif world.absences:
        found.append("Some agents are away for a while.")
    if world.outages:
        found.append("Some links are down for a while.")
    if world.corruption is not None and world.corruption.rate > 0:
        found.append(f"Of all messages a share of {setting(world.corruption.rate)} says something false.")
    if world.liars:
        found.append(f"{plural(len(world.liars), 'agent')} {'lies' if len(world.liars) == 1 else 'lie'}.")
    return found
