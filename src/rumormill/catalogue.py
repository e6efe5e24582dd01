"""The one table of names: policy, estimator, law, network and channel ↔ class.

Specs, the command line, `rm.simulate`, `rumormill list`, the documentation and the conformance tests read
it. What settings a name takes follows from the fields of its dataclass. A user's own class is named as
"package.module:Class", and its settings are checked in the same way.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

import msgspec

from rumormill.errors import InputError
from rumormill.plugins import import_own
from rumormill.text import nearest, one_line, shown


class Names(Mapping[str, type]):
    """Names ↔ classes. A class is imported when it is first asked for, so that a new one is one line here."""

    def __init__(self, room: str, base: str, places: dict[str, str]) -> None:
        self._room, self._base, self._places = room, base, places
        self._found: dict[str, type] = {}

    def __getitem__(self, name: str) -> type:
        if name not in self._found:
            self._found[name] = self._at(self._places[name])
        return self._found[name]

    @functools.cached_property
    def base(self) -> type:
        """What they all derive from."""
        return self._at(self._base)

    def _at(self, place: str) -> type:
        module, _, name = place.partition(":")
        if not module.startswith("rumormill."):
            module = f"rumormill.{self._room}.{module}"
        found: type = getattr(importlib.import_module(module), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


POLICIES = Names(
    "policies",
    "base:Policy",
    {
        "decentralized": "decentralized:DecentralizedMPUCB",
        "centralized": "centralized:CentralizedMPUCB",
        "kmp": "kmp:KMPUCB",
        "consensus": "consensus:ConsensusUCB",
        "robust": "decentralized:RobustUCB",
        "default": "default:Default",
        "thompson-kmp": "thompson_kmp:ThompsonKMP",
        "origin-median": "origin_median:OriginMedianUCB",
        "epsilon-greedy": "epsilon_greedy:EpsilonGreedy",
        "coop-ucb2": "baselines.coop_ucb2:CoopUCB2",
        "dducb": "baselines.dducb:DDUCB",
        "robust-gossip": "baselines.coop_ucb2:RobustGossip",
        "klinf-ucb": "baselines.klinf_ucb:KLInfUCB",
        "robust-dirichlet": "baselines.dirichlet:RobustDirichlet",
        "alpha-ts": "baselines.alpha_ts:AlphaStableTS",
        "dpe2": "baselines.dpe2:DPE2",
        "rmm-ucb": "baselines.rmm_ucb:RMMUCB",
        "decentralized-ts": "baselines.decentralized_ts:DecentralizedTS",
        "adar-ucb": "baselines.adar_ucb:AdaRUCB",
        "ht-hmucb": "baselines.ht_hmucb:HTHMUCB",
        "coop-se": "baselines.coop_se:CoopSE",
    },
)
ESTIMATORS = Names(
    "estimators",
    "base:Estimator",
    {
        "trimmed": "trimmed:TrimmedMean",
        "median-of-means": "median_of_means:MedianOfMeans",
        "bucket-median": "median_of_means:BucketMedian",
        "catoni": "catoni:Catoni",
        "empirical": "empirical:EmpiricalMean",
        "clipped": "clipped:ClippedMean",
        "self-tuned": "self_tuned:SelfTuned",
        "median-bound": "median_bound:MedianBound",
        "robust-moss": "robust_moss:RobustMOSS",
        "huber-sgd": "huber_sgd:HuberSGD",
        "catoni-bound": "catoni:CatoniBound",
        "mr-ucb": "mr_ucb:MRUCB",
    },
)
LAWS = Names(
    "arms",
    "base:Arm",
    {
        "alpha-stable": "stable:AlphaStable",
        "gaussian": "laws:Gaussian",
        "student-t": "laws:StudentT",
        "pareto": "laws:Pareto",
        "lognormal": "laws:LogNormal",
        "two-point": "laws:TwoPoint",
        "bernoulli": "laws:Bernoulli",
        "empirical": "laws:Empirical",
    },
)
NETWORKS = Names(
    "graphs",
    "topologies:Topology",
    {
        "erdos_renyi": "topologies:ErdosRenyi",
        "barabasi_albert": "topologies:BarabasiAlbert",
        "watts_strogatz": "topologies:WattsStrogatz",
        "random_regular": "topologies:RandomRegular",
        "ring": "topologies:Ring",
        "path": "topologies:Path",
        "star": "topologies:Star",
        "complete": "topologies:Complete",
        "grid": "topologies:Grid",
        "balanced_tree": "topologies:BalancedTree",
        "file": "topologies:GraphFile",
        # Named by its path: a room above this one, imported when it is asked for.
        "mesh": "rumormill.mesh.file:MeshTopology",
    },
)
ALSO = {"channel": {"lossy": "imperfect"}}
"""Other words for the same, understood but not listed."""
CHANNELS = Names(
    "protocol",
    "channel:Channel",
    {
        "perfect": "channel:PerfectChannel",
        "imperfect": "channel:Imperfect",
    },
)


@dataclasses.dataclass(frozen=True)
class Kind:
    """One of the five kinds of things with names."""

    name: str
    tag: str
    """The key that names the class in a spec; "type" is understood everywhere."""
    classes: Names
    needs: tuple[str, ...]
    """Methods that make a class one of this kind, whatever it derives from; none: it must derive."""

    @property
    def base(self) -> type:
        """What classes of this kind derive from."""
        return self.classes.base


KINDS = {
    "policy": Kind("policy", "type", POLICIES, ("agent",)),
    "estimator": Kind("estimator", "type", ESTIMATORS, ()),
    "law": Kind("law", "law", LAWS, ()),
    "network": Kind("network", "kind", NETWORKS, ("build",)),
    "channel": Kind("channel", "type", CHANNELS, ("open",)),
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of a class: a field of its dataclass, or an argument of its constructor."""

    name: str
    type: Any
    required: bool
    default: Any


def name_of(kind: str, cls: type) -> str:
    """The name of a class: the short one of a built-in, "module:Class" of an own."""
    for name, known in KINDS[kind].classes.items():
        if known is cls:
            return name
    return f"{cls.__module__}:{cls.__qualname__}"


def label_of(cls: Any) -> str:
    """The name of a policy in tables and figures: its class attribute `label`, else the name of the class."""
    own = vars(cls).get("label") if isinstance(cls, type) else None
    return own if isinstance(own, str) and own else str(cls.__name__)


def is_own(name: str) -> bool:
    """Whether a name means a user's own class."""
    return ":" in name


def find(kind: str, name: Any, *, where: str = "", folder: str | Path | None = None) -> Any:
    """The class behind a name; `where` begins every message, `folder` is importable too."""
    known = KINDS[kind]
    where = where or f"{kind}.{known.tag}"
    if not isinstance(name, str):
        raise InputError(f"{where} = {shown(name)} is not allowed: a name, or 'package.module:Class'")
    if is_own(name):
        return _own(known, name, where, folder)
    name = ALSO.get(kind, {}).get(name, name)
    if name not in known.classes:
        raise InputError(f"{where} = {name!r} is not allowed{nearest(name, known.classes)}, module:Class")
    return known.classes[name]


def settings(made: Any) -> list[Setting]:
    """The settings that a class (or another maker of things) takes, in order."""
    if dataclasses.is_dataclass(made):
        hints = _hints(made)  # type: ignore[arg-type]
        return [
            Setting(
                field.name,
                hints.get(field.name, Any),
                field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
                field.default if field.default_factory is dataclasses.MISSING else field.default_factory(),
            )
            for field in dataclasses.fields(made)
            if field.init
        ]
    called = getattr(made, "__init__", made) if isinstance(made, type) else made
    hints, parameters = _hints(called), list(inspect.signature(called).parameters.items())
    return [
        Setting(name, hints.get(name, Any), parameter.default is parameter.empty, parameter.default)
        for name, parameter in (parameters[1:] if isinstance(made, type) else parameters)
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


def check(
    kind: str,
    given: str | Mapping[str, Any],
    *,
    where: str = "",
    folder: str | Path | None = None,
    leave_out: Iterable[str] = (),
    beside: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """The class behind a name and its settings, each as the class wants it; nothing is made yet.

    `given` is a name, or a table with the name under the kind's tag (or "type") and the settings beside it.
    `leave_out` are settings that may not be given here, `beside` keys of the table that the caller has
    taken out already: messages offer them too.
    """
    known = KINDS[kind]
    where = where or kind
    table = {known.tag: given} if isinstance(given, str) else dict(given)
    tag = known.tag if known.tag in table or "type" not in table else "type"
    if tag not in table:
        raise InputError(f"{_at(where, known.tag)}: missing; one of {', '.join(known.classes)}, module:Class")
    name = table.pop(tag)
    cls = find(kind, name, where=_at(where, tag) if isinstance(given, Mapping) else where, folder=folder)
    allowed = [one for one in settings_of(kind, cls) if one.name not in set(leave_out)]
    values = {}
    names = [one.name for one in allowed]
    for key in table:
        if key not in names:
            raise InputError(f"{_at(where, key)}: unknown key{nearest(key, [*beside, *names])}")
    for one in allowed:
        if one.name in table:
            values[one.name] = _converted(table[one.name], one.type, _at(where, one.name), folder)
        elif one.required:
            raise InputError(f"{_at(where, one.name)}: missing")
    return cls, values


def make(
    kind: str,
    given: str | Mapping[str, Any],
    *,
    where: str = "",
    folder: str | Path | None = None,
    leave_out: Iterable[str] = (),
    beside: Iterable[str] = (),
) -> Any:
    """The thing that a name with its settings describes, every mistake named by its key; see `check`."""
    where = where or kind
    cls, values = check(kind, given, where=where, folder=folder, leave_out=leave_out, beside=beside)
    try:
        if kind != "policy":
            return cls(**values)
        from rumormill.policies.base import OwnPolicy, as_policy

        if _makes_agents_only(kind, cls):
            return OwnPolicy(cls, tuple(values.items()))
        return as_policy(cls(**values))
    except InputError as error:
        text = str(error).removeprefix(f"{cls.__name__}: ")
        known = text.split(" ", 1)[0] in {one.name for one in settings_of(kind, cls)}
        raise InputError(f"{where}.{text}" if known else f"{where}: {text}") from None
    except (TypeError, ValueError) as error:
        if cls in KINDS[kind].classes.values():
            raise
        name = name_of(kind, cls)
        raise InputError(f"{where}: {name} refused its settings: {one_line(str(error))}") from None


def settings_of(kind: str, cls: Any) -> list[Setting]:
    """The settings of a class of this kind: a class of agents takes its seat from the driver."""
    return settings(cls)[1:] if _makes_agents_only(kind, cls) else settings(cls)


def _makes_agents_only(kind: str, cls: Any) -> bool:
    return kind == "policy" and not _is_policy_class(cls)


def given(kind: str, thing: Any, *, where: str = "") -> Any:
    """A thing of this kind from what a caller gave: the thing itself, its name, or a table."""
    return make(kind, thing, where=where or kind) if isinstance(thing, str | Mapping) else thing


def _at(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


# --- own classes ----------------------------------------------------------------------------------------


def _own(known: Kind, name: str, where: str, folder: str | Path | None) -> Any:
    module_name, _, path = name.partition(":")
    module = import_own(module_name, folder, f"{where} = {name!r}")
    found: Any = module
    for step in path.split("."):
        if not step or not hasattr(found, step):
            public = [each for each in vars(module) if not each.startswith("_")]
            raise InputError(f"{where} = {name!r}: {module_name} has no {path!r}{nearest(path, public)}")
        found = getattr(found, step)
    if not _is_of_kind(known, found):
        needs = f"derive it from rm.{known.base.__name__}"
        if known.needs:
            needs += f", or give it {', '.join(known.needs)}"
        if known.name == "policy":
            from rumormill.policies.base import AGENT_METHODS

            needs = f"give it agent(seat), or the methods {', '.join(AGENT_METHODS)} and a seat to begin with"
        kind = f"an {known.name}" if known.name[0] in "aeiou" else f"a {known.name}"
        raise InputError(f"{where} = {name!r} is not {kind}: {needs}")
    return found


def _is_of_kind(known: Kind, found: Any) -> bool:
    if not callable(found):
        return False
    if known.name == "policy":
        return _is_policy_class(found) or _makes_agents(found)
    if not isinstance(found, type):
        return False
    has_all = all(callable(getattr(found, need, None)) for need in known.needs)
    return issubclass(found, known.base) or (bool(known.needs) and has_all)


def _is_policy_class(found: Any) -> bool:
    return isinstance(found, type) and (
        issubclass(found, POLICIES.base)
        or (callable(getattr(found, "agent", None)) and not _has_methods(found))
    )


def _makes_agents(found: Any) -> bool:
    """A class of agents, or a function that takes a seat."""
    return _has_methods(found) if isinstance(found, type) else inspect.isfunction(found)


def _has_methods(found: Any) -> bool:
    from rumormill.policies.base import AGENT_METHODS

    return all(callable(getattr(found, name, None)) for name in AGENT_METHODS)


# --- values ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)  # a sweep asks thousands of times
def _hints(made: Any) -> dict[str, Any]:
    """The types of the settings; an own class whose types cannot be read is not checked by type."""
    try:
        return typing.get_type_hints(made)
    except Exception:
        return {}


def _converted(value: Any, wanted: Any, where: str, folder: str | Path | None) -> Any:
    """The value as the type wants it; named things (an estimator) are made from their names."""
    for kind, known in KINDS.items():
        if wanted is known.base:
            if isinstance(value, known.base):
                return value
            if not isinstance(value, str | Mapping):
                raise InputError(f"{where} = {shown(value)} is not allowed: a name, or a table with a type")
            return make(kind, value, where=where, folder=folder)
    if dataclasses.is_dataclass(wanted_class(wanted)) and isinstance(value, Mapping):
        _refuse_unknown(value, wanted_class(wanted), where)
    try:
        return msgspec.convert(value, wanted, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(_explained(where, value, wanted, str(error))) from None
    except TypeError:
        return value  # a type of the user's own, which only its class can check


def wanted_class(wanted: Any) -> Any:
    """The one class in a type such as `Moments | None`."""
    options = [each for each in typing.get_args(wanted) if each is not type(None)]
    return options[0] if isinstance(wanted, UnionType) and len(options) == 1 else wanted


def _refuse_unknown(value: Mapping[str, Any], cls: Any, where: str) -> None:
    names = [field.name for field in dataclasses.fields(cls)]
    for key in value:
        if key not in names:
            raise InputError(f"{where}.{key}: unknown key{nearest(key, names)}")


def _explained(where: str, value: Any, wanted: Any, text: str) -> str:
    """The library's message in the words of the rest."""
    words, _, at = text.partition(" - at `$")
    inner = at.rstrip("`")
    if words.startswith("Invalid") or (isinstance(value, str) and choices(wanted)):
        return f"{where} = {shown(value)} is not allowed{nearest(str(value), choices(wanted))}"
    missing = words.removeprefix("Object missing required field `")
    if missing != words:
        return f"{where}{inner}.{missing.rstrip('`')}: missing"
    words = words.replace("`", "")
    if " is not allowed" in words:  # said by the value's own class
        return f"{where}{inner}.{words}"
    return f"{where}{inner} = {shown(value)} is not allowed: {words[:1].lower()}{words[1:]}"


def choices(wanted: Any) -> list[str]:
    """The words that a type takes; "a number" and the like for its other options."""
    options = typing.get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    if typing.get_origin(wanted) is typing.Union:
        options = typing.get_args(wanted)
    words = [
        str(w)
        for option in options
        if typing.get_origin(option) is typing.Literal
        for w in typing.get_args(option)
    ]
    if words and any(option in (int, float) for option in options):
        words.append("a number")
    if words and any(typing.get_origin(option) not in (None, typing.Literal) for option in options):
        words.append("a list")
    return words
