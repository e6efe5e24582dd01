"""What types cannot say: values that do not go together, and sizes that no machine has."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rumormill import catalogue
from rumormill.arms import VaryingSource
from rumormill.errors import InputError
from rumormill.experiments.plan import SweepPoint
from rumormill.experiments.spec.nesting import default_of, is_random
from rumormill.experiments.spec.schema import Claim, Spec
from rumormill.experiments.spec.tuned_constants import constants
from rumormill.system_memory import MOST_BYTES, refuse_impossible
from rumormill.text import memory, nearest, shown
from rumormill.validate import reward

# Every cell is a file, and every point is checked before anything runs.
MOST_CELLS, MOST_POINTS = 10_000_000, 10_000
BYTES_PER_VALUE = 8


class Checks:
    """Checks the points of a sweep; what several points share is looked at once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def point(self, point: SweepPoint) -> None:
        """Refuse a point that no run can play."""
        spec = point.spec
        if self._is_new(spec.network):
            check_network(point)
        if self._is_new(spec.network, spec.surroundings):
            check_world(point)
        if self._is_new(spec.arms, spec.size):
            check_arms(point)
        if self._is_new(spec.network, spec.size, len(spec.policies)):
            check_size(point)
        if self._is_new(spec.arms, spec.policies, spec.surroundings):
            check_policies(point)

    def _is_new(self, *what: Any) -> bool:
        key = repr(what)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def check_network(point: SweepPoint) -> None:
    """Refuse a network that cannot be drawn, without drawing it."""
    spec, family = point.spec, point.topology
    own = catalogue.is_own(spec.network.kind)
    if spec.network.fresh and not own and not is_random(type(family)):
        raise InputError(
            f"network.fresh = True is not allowed: a {spec.network.kind} is the same in every trial"
        )
    if hasattr(family, "require_possible"):
        try:
            family.require_possible()
        except InputError as error:
            raise InputError(f"network: {error}") from None


def check_world(point: SweepPoint) -> None:
    """Refuse agents that the network does not have."""
    world, agents = point.world, point.n_agents
    named = {
        "absences": [v for v, _, _ in world.absences],
        "outages": [v for a, b, _, _ in world.outages for v in (a, b)],
        "byzantine.agents": world.liars,
    }
    for key, ids in named.items():
        if agents and ids and max(ids) >= agents:
            raise InputError(f"{key}: there is no agent {max(ids)}, the network has 0..{agents - 1}")


def check_arms(point: SweepPoint) -> None:
    """Refuse arms that leave nothing to learn, or moments that are not finite."""
    spec, arms, agents = point.spec, point.spec.arms, point.n_agents
    if arms.means != "uniform":
        if arms.gap is not None:
            raise InputError(f"arms.gap = {arms.gap:g} is not allowed beside arms.means: leave one out")
        for number, mean in enumerate(arms.means):
            reward(f"arms.means[{number}]", mean)
        if arms.K is not None and len(arms.means) != arms.K:
            raise InputError(f"arms.K = {arms.K} is not allowed: arms.means has {len(arms.means)} values")
    if arms.each is not None and len(arms.each) != spec.n_arms:
        raise InputError(f"arms.each has {len(arms.each)} tables for {spec.n_arms} arms: give one for each")
    try:
        bandit = point.bandit(0)
        bandit.moments()
        if agents and isinstance(bandit, VaryingSource):
            bandit.expected(0, 1, agents)  # refuses clusters that the network has no agents for
    except InputError as error:
        raise InputError(str(error) if str(error).startswith("arms") else f"arms: {error}") from None


def check_policies(point: SweepPoint) -> None:
    """Refuse parameters that a policy does not take together, or not with these arms."""
    bandit, world = point.bandit(0), point.world
    moments = bandit.moments()
    for number, part in enumerate(point.spec.policies):
        policy = point.policy(part)
        try:
            policy.require_moments_below(bandit.tail_index)
            policy.require_usable(moments)
            policy.require_supported(world)
        except InputError as error:
            raise InputError(f"policies[{number}] ({part.label}): {error}") from None


def check_size(point: SweepPoint) -> None:
    """Refuse a run whose tables would not fit into memory, or that has no end."""
    size, agents = point.spec.size, point.n_agents
    refuse_impossible(agents, size.horizon)
    marks = min(size.checkpoints, size.horizon)
    needed = float(BYTES_PER_VALUE) * marks * max(agents, 1) * len(point.spec.policies)
    if needed > MOST_BYTES:
        raise InputError(
            f"checkpoints = {size.checkpoints:,} is not possible: the regret of every agent at each of them "
            f"takes {memory(needed)}, at most {memory(MOST_BYTES)} are allowed; take fewer"
        )


def check_number(spec: Spec, trials: int) -> None:
    """Refuse more points or cells than anybody waits for."""
    points = 1
    for values in spec.sweep.values():
        points *= len(values)
    if spec.tune is not None:
        points *= len(constants(spec.tune))
    if points > MOST_POINTS:
        raise InputError(f"sweep: {points:,} points are not possible: at most {MOST_POINTS:,} are allowed")
    if points * trials > MOST_CELLS:
        what = f"trials = {trials:,}" + (f" at {points:,} points" if points > 1 else "")
        raise InputError(f"{what} is not possible: at most {MOST_CELLS:,} trials are allowed in all")


def check_labels(spec: Spec) -> None:
    """Every policy has a name of its own."""
    for label, count in Counter(spec.labels).items():
        if count > 1:
            raise InputError(f"policies: {count} of them are called {label!r}; give each a label of its own")


def check_overridden(spec: Spec, axis: str, key: str, given: list[dict[str, Any]]) -> None:
    """Refuse an axis that would replace what a policy sets itself; `given` is what the file says."""
    for number, (part, table) in enumerate(zip(spec.policies, given, strict=True)):
        if key in table and table[key] != default_of("policies", part, key, spec.folder):
            raise InputError(
                f"sweep.{axis}: policies[{number}] ({part.label}) sets {key} = {shown(table[key])} itself, "
                "which the sweep would replace: leave one of the two out"
            )


def check_claims(spec: Spec) -> None:
    """Every claim is about policies and parameters that are there."""
    for number, claim in enumerate(spec.claims):
        wrong = _wrong(spec, claim)
        if wrong:
            raise InputError(f"claims[{number}].{wrong}")


def check_verdicts(spec: Spec) -> None:
    """The baseline is one of the policies."""
    baseline = spec.verdicts.baseline
    if baseline is not None and baseline not in spec.labels:
        raise InputError(f"verdicts.baseline = {baseline!r} is not allowed{nearest(baseline, spec.labels)}")


def known_claims(spec: Spec, claims: list[Claim]) -> list[Claim]:
    """Those of the claims that a spec can be asked about."""
    return [claim for claim in claims if not _wrong(spec, claim)]


def _wrong(spec: Spec, claim: Claim) -> str:
    """What a claim names that is not there; nothing if all is well."""
    named = {field: getattr(claim, field) for field in claim.__struct_fields__}
    for field in ("policy", "than", "over"):
        if field in named and named[field] not in spec.labels:
            return f"{field} = {named[field]!r} is not allowed{nearest(named[field], spec.labels)}"
    axis = named.get("parameter")
    if axis is None:
        return ""
    if axis not in spec.sweep:
        hint = nearest(axis, spec.sweep) if spec.sweep else ": the file has no sweep"
        return f"parameter = {axis!r} is not allowed{hint}"
    return "" if len(spec.sweep[axis]) > 1 else f"parameter = {axis!r} is not allowed: it has one value only"
