"""Fingerprints of what is played and said, to prove that a refactoring changes neither.

    python scripts/frozen.py --write                 # at the commit to compare with
    python scripts/frozen.py --check                 # at a later one
    python scripts/frozen.py --check --only games    # one group: specs, games, advice, journals or errors

What is frozen stands in frozen.json: sha256 sums, and error messages as text, so that their differences can
be read. Exit status 1 if something differs that frozen-exceptions.toml does not name. Sums hold for one set
of library versions on one kind of processor. RUMORMILL_DATA names the folder of the real graphs.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import itertools
import json
import os
import random
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import rumormill as rm

STORED = Path(__file__).with_name("frozen.json")
EXCEPTIONS = Path(__file__).with_name("frozen-exceptions.toml")
Values = dict[str, str]
SKIPPED = "skipped: "
"""How the value begins of what could not be worked out here."""
wrong: Any = rm  # called here in ways that a type checker refuses too


# --- doors: everything that is not `rm.NAME` or the command line is imported here -----------------------


def command_line(words: Sequence[str]) -> None:
    """`rumormill WORDS`; leaves with SystemExit."""
    from rumormill.cli import main

    main(words)


def live() -> Any:
    """The parts of a live node: no sockets, clocks or keys among them."""
    from rumormill.live.core.frames import HEAD
    from rumormill.live.core.node import Node
    from rumormill.live.core.node_config import node_config
    from rumormill.live.core.records import encode
    from rumormill.live.io.folder import pack
    from rumormill.live.io.journal import Journal
    from rumormill.mesh.file import read_mesh

    return SimpleNamespace(
        read_mesh=read_mesh,
        node_config=node_config,
        head=HEAD.size,
        Journal=Journal,
        Node=Node,
        encode=encode,
        pack=pack,
    )


# --- tools ----------------------------------------------------------------------------------------------


def digest(*parts: bytes) -> str:
    """The sha256 sum of parts, each with its length in front: no two lists of parts give the same bytes."""
    sum_ = hashlib.sha256()
    for part in parts:
        sum_.update(len(part).to_bytes(8, "little") + part)
    return sum_.hexdigest()


def of_array(values: Any) -> bytes:
    """Shape and values of an array, whatever its byte order and layout."""
    array = np.asarray(values)
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    return json.dumps([kind, array.shape]).encode() + np.ascontiguousarray(array, dtype=kind).tobytes()


def of_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def said(*words: str) -> Answer:
    """What the command line answers, in this process: starting one for each would take most of the time."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    if code in (130, 143):
        raise KeyboardInterrupt
    return Answer(code, out.getvalue(), err.getvalue())


def must(*words: str) -> str:
    """The same where it has to go well."""
    answer = said(*words)
    if answer.code:
        raise SystemExit(f"rumormill {' '.join(words)}: {answer.err}")
    return answer.out


# Newer than the fingerprints: golden actions and oracles hold them.
NEWER = {
    *("adar-ucb", "alpha-ts", "coop-se", "decentralized-ts", "default", "dpe2", "epsilon-greedy", "ht-hmucb"),
    *("klinf-ucb", "rmm-ucb", "robust-dirichlet", "thompson-kmp", "bucket-median"),
}


def require_all(kind: str, frozen: Sequence[str]) -> None:
    """Nothing that a spec may name is forgotten here, unless it is newer than the fingerprints."""
    left_out = {str(row["name"]) for row in json.loads(must("list", kind, "--json"))} - {*frozen} - NEWER
    if left_out:
        raise SystemExit(f"these {kind} are not frozen: {', '.join(sorted(left_out))}")


@contextlib.contextmanager
def empty_folder(*, data: bool = False) -> Iterator[Path]:
    """An empty working folder, a terminal of 80 columns and, unless asked for, no data files."""
    before, kept = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="frozen-") as folder:
        os.chdir(folder)
        os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
        if not data:
            os.environ.pop("RUMORMILL_DATA", None)
            os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        try:
            yield Path(folder)
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(kept)


# --- 1. the shipped experiments -------------------------------------------------------------------------

SPECS = (
    *("fig1a", "fig1b", "fig1c", "fig1d", "fig1e", "fig1f", "theory", "gamma-sparse"),
    *("arms", "gaps", "estimators", "tuned", "loss", "delay", "churn", "liars"),
    "change",
)


def specs() -> Values:
    """The sums of the results of every shipped experiment at quick scale, as its manifest has them."""
    if "RUMORMILL_DATA" in os.environ:
        os.environ["RUMORMILL_DATA"] = str(Path(os.environ["RUMORMILL_DATA"]).resolve())
    require_all("specs", SPECS)
    found = {}
    with empty_folder(data=True):
        for name in SPECS:
            answer = said("reproduce", name, "--quick", "--no-report", "--jobs", "1", "--out", name)
            manifest = Path(name) / "manifest.json"
            sums = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
            found[name] = sums.get("results_sha256") or SKIPPED + answer.err.strip().splitlines()[-1]
    return found


# --- 2. games -------------------------------------------------------------------------------------------

MEANS = (0.2, 0.9, 0.5, 0.7, 0.35, 0.6)
ESTIMATORS = (
    *("trimmed", "median-of-means", "catoni", "empirical", "clipped", "self-tuned"),
    *("median-bound", "robust-moss", "huber-sgd", "catoni-bound", "mr-ucb"),
)
WITH_ESTIMATOR = ("decentralized", "centralized", "kmp", "robust")
AVERAGING = ("consensus", "coop-ucb2", "robust-gossip")
POLICIES = (*WITH_ESTIMATOR, "origin-median", *AVERAGING, "dducb")
SEED = 20
LARGEST_SLOW = 12
"""Agents beside an estimator that goes through all samples for every index."""
SLOW = ("catoni", "catoni-bound", "mr-ucb")
INDEXED = ESTIMATORS[5:]
"""Their indices have radii of their own: no factor, no schedule."""

LAWS: dict[str, Callable[[float], rm.Arm]] = {
    "alpha-stable 1.9": lambda m: rm.AlphaStable(alpha=1.9, loc=m),
    "alpha-stable 1.5": lambda m: rm.AlphaStable(alpha=1.5, loc=m),
    "gaussian": lambda m: rm.Gaussian(loc=m, scale=0.5),
    "student-t": lambda m: rm.StudentT(df=2.2, loc=m, scale=0.4),
    "pareto": lambda m: rm.Pareto(tail=2.5, scale=0.3, shift=m),
    "lognormal": lambda m: rm.LogNormal(mu=-1.0, sigma=0.8, shift=m),
    "two-point": lambda m: rm.TwoPoint(probability=m),
    "empirical": lambda m: rm.Empirical(data=[m - 1.0, m, m, m + 3.0]),
}
NETWORKS: dict[str, Callable[[int], rm.Network]] = {
    "erdos_renyi": lambda n: rm.Network.erdos_renyi(n, 0.35, rng=n),
    "barabasi_albert": lambda n: rm.Network.barabasi_albert(n, 2, rng=n),
    "ring": lambda n: rm.Network.ring(n),
    "star": lambda n: rm.Network.star(n),
    "path": lambda n: rm.Network.path(n),
    "complete": lambda n: rm.Network.complete(n),
}


def faults(n: int, network: rm.Network) -> dict[str, dict[str, Any]]:
    """What may go wrong among n agents, as arguments of `rm.simulate`."""
    a, b = 0, int(network.neighbours(0)[0])
    late: Any = ("geometric", 0.5, 6)
    return {
        "perfect": {},
        "loss": {"channel": rm.Imperfect(p=0.7)},
        "copies lost": {"channel": rm.Imperfect(p=0.6, per="copy")},
        "links fail": {"channel": rm.Imperfect(p=0.7, symmetric=True)},
        "delay": {"channel": rm.Imperfect(delay=3)},
        "lost or late": {"channel": rm.Imperfect(p=0.8, delay=late)},
        "churn": {"churn": rm.Churn(up=20, down=6)},
        "away": {"absences": [(1, 5, 20), (n - 1, 30, 45)], "outages": [(a, b, 3, 30)]},
        "corruption": {"corruption": rm.Corruption(rate=0.2, shift=-2.0)},
        "corrupt rows": {"corruption": rm.Corruption(rate=0.2, scale=-3.0, rows=True, at="receiver")},
        "corrupt law": {"corruption": rm.Corruption(rate=0.3, law=rm.StudentT(df=1.5))},
        "promote": {"byzantine": rm.Byzantine(agents=1)},
        "slander": {"byzantine": rm.Byzantine(agents=[n - 1], attack="slander")},
        "flood": {"byzantine": rm.Byzantine(agents=[2], attack="flood"), "channel": rm.Imperfect(p=0.9)},
        "everything": {
            "channel": rm.Imperfect(p=0.8, delay=2),
            "churn": rm.Churn(up=30, down=5),
            "corruption": rm.Corruption(rate=0.1, shift=1.0),
            "byzantine": rm.Byzantine(agents=[1], attack="slander"),
        },
    }


FAULTS = tuple(faults(5, rm.Network.ring(5)))
BEARABLE = {"dducb": ("perfect",)} | dict.fromkeys(AVERAGING, ("perfect", "links fail", "churn", "away"))

# What a policy may be told beside γ, moments and the factor of the radius; one is drawn per game.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "decentralized": [
        {},
        {"clique_filter": False},
        {"clique_filter": False, "quiet": 0.25},
        {"start": "shared"},
        {"clique_filter": False, "confidence": "anytime"},
        {"clique_filter": False, "hold": 3},
        {"discard": "RCL-LF"},
    ],
    "centralized": [
        {},
        {"leaders": "dominating"},
        {"quiet": 0.25},
        {"start": "shared", "patience": 4},
        {"confidence": "anytime", "leaders": "dominating"},
    ],
    "kmp": [
        {},
        {"guard": 0},
        {"guard": 1},
        {"quiet": 0.0},
        {"start": "shared", "quiet": 0.25},
        {"confidence": "anytime"},
    ],
    "robust": [{}, {"confidence": "anytime"}],
    "origin-median": [
        {},
        {"count": "trimmed"},
        {"count": "cautious", "spare": 2},
        {"quiet": 0.25},
        {"start": "shared", "f": 0},
    ],
    "consensus": [
        {"radius": "moment"},
        {"radius": "moment", "kappa": 0.5},
        {"radius": "moment", "epsilon": 0.3},
        {},
        {"radius": "logarithmic"},
    ],
    "coop-ucb2": [{}, {"sigma": 1.0}],
    "robust-gossip": [{}],
    "dducb": [{}, {"accelerated": False}, {"own": False}, {"sigma": 1.0, "eta": 1.5}],
}


@dataclass(frozen=True)
class Game:
    """One game, without the engine that plays it."""

    name: str
    policy: dict[str, Any]
    bandit: Callable[[], Any]
    network: Callable[[], rm.Network]
    fault: str
    horizon: int
    trials: int
    seed: int


def games_to_play() -> list[Game]:
    """Policies × estimators × faults, drawn from a seed: the same list at every commit."""
    chance = random.Random(SEED)
    pairs = [(policy, mean) for policy in WITH_ESTIMATOR for mean in ESTIMATORS] * 3
    pairs += [("origin-median", "")] * 14 + [(policy, "") for policy in AVERAGING] * 8 + [("dducb", "")] * 6
    turns = {policy: itertools.cycle(BEARABLE.get(policy, FAULTS)) for policy in POLICIES}
    told = {policy: itertools.cycle(SETTINGS[policy]) for policy in POLICIES}
    made = [
        _drawn(chance, number, policy, mean, next(turns[policy]), next(told[policy]))
        for number, (policy, mean) in enumerate(pairs)
    ]
    return made + _varying(len(made))


def _drawn(
    chance: random.Random, number: int, policy: str, mean: str, fault: str, settings: Mapping[str, Any]
) -> Game:
    agents = chance.choice((5, 6, 8, 9, 12, 15) if mean not in SLOW else (5, 7, LARGEST_SLOW))
    if number % 25 == 0 and mean not in SLOW:
        agents = 40  # a few of more than a machine word of neighbours' neighbours
    law, graph = chance.choice(sorted(LAWS)), chance.choice(sorted(NETWORKS))
    arms, gamma = chance.randint(2, 6), chance.choice((0, 1, 1, 2, 2, 3, "half-diameter"))
    horizon = chance.choice((50, 80, 120, 200, 300) if agents <= 9 and mean not in SLOW else (50, 80, 120))
    zeta = chance.choice((0.25, 0.5, 1.0))
    table: dict[str, Any] = {"type": policy, **settings}
    if mean in INDEXED:
        table.pop("confidence", None)
    else:
        table["zeta"] = zeta
    if policy in (*WITH_ESTIMATOR[:3], "origin-median"):
        table["gamma"] = gamma
    if mean:
        table["estimator"] = mean
    return Game(
        name=f"{number:03d} {policy} {mean} {fault}, {law}, {graph}".replace("  ", " "),
        policy=table,
        bandit=lambda: rm.Bandit([LAWS[law](m) for m in MEANS[:arms]]),
        network=lambda: NETWORKS[graph](agents),
        fault=fault,
        horizon=horizon,
        trials=1 + number % 2,
        seed=number,
    )


def _varying(first: int) -> list[Game]:
    """Arms that differ between agents or change, costs, recorded rewards; the theory's own constants."""

    def bandit(*means: float, objective: Any = "maximise") -> rm.Bandit:
        return rm.Bandit([rm.StudentT(df=2.5, loc=m, scale=0.3) for m in means], objective=objective)

    one, two = bandit(0.1, 0.9, 0.5), bandit(0.8, 0.2, 0.4)
    table = np.random.default_rng(SEED).standard_t(2.5, (120, 8, 3)) + np.array([0.0, 0.5, 1.0])
    sources: dict[str, Callable[[], Any]] = {
        "clusters": lambda: rm.Clusters([one, two], members=[[0, 1, 2, 3], [4, 5, 6, 7]]),
        "piecewise": lambda: rm.Piecewise([(1, one), (60, two)]),
        "seasonal": lambda: rm.Seasonal(one, amplitude=[0.5, 0.0, 0.2], period=40),
        "trend": lambda: rm.Trend(one, to=[0.9, 0.1, 0.5], rounds=100),
        "replay": lambda: rm.Replay(table),
        "costs": lambda: bandit(0.1, 0.9, 0.5, objective="minimise"),
    }
    played: list[tuple[str, dict[str, Any], str]] = [
        ("kmp", {"gamma": 2, "zeta": 0.5}, "perfect"),
        ("decentralized", {"gamma": 1, "clique_filter": False, "zeta": 0.5}, "lost or late"),
        ("centralized", {"gamma": 1}, "slander"),
        ("consensus", {"radius": "moment"}, "churn"),
    ]
    pairs = itertools.product(sources.items(), played)
    return [
        Game(
            name=f"{number:03d} {policy} {fault}, {what}",
            policy={"type": policy, **settings},
            bandit=make,
            network=lambda: rm.Network.erdos_renyi(8, 0.4, rng=3),
            fault=fault,
            horizon=120,
            trials=1,
            seed=number,
        )
        for number, ((what, make), (policy, settings, fault)) in enumerate(pairs, first)
    ]


def games() -> Values:
    """Per game and engine the sums of actions, regret and messages; "refused" where it is not played."""
    require_all("policies", POLICIES)
    require_all("estimators", ESTIMATORS)
    found: Values = {}
    for game in games_to_play():
        by_engine = {engine: _played(game, engine) for engine in ("reference", "fast")}
        found |= {f"{game.name}: {engine}": value for engine, value in by_engine.items()}
        plays = {value.split()[0] for value in by_engine.values() if value != "refused"}
        found[f"{game.name}: both"] = "the same actions" if len(plays) == 1 else f"{len(plays)} games"
    return found


def _played(game: Game, engine: Any) -> str:
    network = game.network()
    try:
        result = rm.simulate(
            game.bandit(),
            network,
            game.policy,
            horizon=game.horizon,
            trials=game.trials,
            rng=game.seed,
            engine=engine,
            actions=True,
            workers=1,
            **faults(network.n_agents, network)[game.fault],
        )
    except rm.InputError:
        return "refused"
    except Exception as error:  # of one game; the others may still tell more
        return f"failed: {type(error).__name__}: {error}"
    # Half of each sum: enough to tell games apart, and a line shows which of the three has changed.
    regret = digest(*map(of_array, (result.checkpoints, result.agent_regret, result.common_regret)))
    messages = digest(*map(of_array, (result.messages, result.wire_bytes, result.agent_rounds)))
    return " ".join(each[:32] for each in (digest(of_array(result.actions)), regret, messages))


# --- 3. advice ------------------------------------------------------------------------------------------


def logs() -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Round-trip times of clients to mirrors: (rounds, agents, arms)."""
    rng = np.random.default_rng(SEED)
    base = np.array([20.0, 26.0, 34.0])
    groups = np.array([[20.0, 30.0, 40.0]] * 3 + [[30.0, 20.0, 40.0]] * 3)
    drift = np.linspace(0.0, 1.0, 150)[:, None, None] * [25.0, 0.0, -5.0]
    change = (np.arange(150) >= 75)[:, None, None] * np.array([20.0, 0.0, 0.0])
    return {
        "stationary": base + rng.gamma(2.0, 3.0, (120, 6, 3)),
        "groups": groups + rng.gamma(2.0, 2.0, (120, 6, 3)),
        "drifting": base + drift + rng.gamma(2.0, 3.0, (150, 5, 3)),
        "changing": base + change + rng.gamma(2.0, 3.0, (150, 5, 3)),
        "heavy tail": base + 4.0 * rng.pareto(1.6, (150, 6, 3)),
    }


def write_log(path: Path, values: np.ndarray[Any, Any], *, chosen_only: bool = False) -> None:
    """A wide table with a column per arm, or (chosen only) a long one of what was tried in turn."""
    rounds, agents, arms = values.shape
    lines = ["time,client,arm,cost" if chosen_only else f"time,client,{_joined('mirror', arms)}"]
    for t, v in itertools.product(range(rounds), range(agents)):
        k, numbers = (t + v) % arms, [f"{x:.6f}" for x in values[t, v]]
        lines.append(",".join([str(t), f"c{v}", *([f"mirror{k}", numbers[k]] if chosen_only else numbers)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _joined(word: str, count: int) -> str:
    return ",".join(f"{word}{k}" for k in range(count))


COMMON = ("--json", "--jobs", "1", "--out", "here")
# What an advice says of where and when it was worked out.
PASSING = ("files", "seconds", "version", "versions", "took", "path", "source", "machine")


def without_passing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_passing(each) for key, each in value.items() if key not in PASSING}
    return [without_passing(each) for each in value] if isinstance(value, list) else value


def advice() -> Values:
    """The sums of advice as JSON: what is found in a log, and what is recommended."""
    found: Values = {}
    with empty_folder():
        for name, values in logs().items():
            log = f"{name.replace(' ', '-')}.csv"
            write_log(Path(log), values)
            found |= _advised(f"log {name}", must("advise", log, "--minimise", *COMMON, "--write", "m.toml"))
            found[f"log {name}: mesh file"] = digest(Path("m.toml").read_bytes())
            Path("m.toml").unlink()
        write_log(Path("long.csv"), logs()["stationary"], chosen_only=True)
        long = ("--arm-column", "arm", "--reward-column", "cost")
        found |= _advised("log of choices", must("advise", "long.csv", "--minimise", *long, *COMMON))
        small = ("--network", "ring n=6", "--horizon", "40", "--trials", "5")
        found |= _advised("spec fig1a", must("advise", "fig1a", *small, *COMMON))
    return found


def _advised(name: str, text: str) -> Values:
    """One sum for each part of the advice, so that a difference says where it is."""
    told = without_passing(json.loads(text))
    return {f"{name}: {key}": digest(of_json(value)) for key, value in told.items()}


# --- 4. journals of live nodes --------------------------------------------------------------------------

MESHES: dict[str, str] = {
    "everybody": 'type = "decentralized"\ngamma = 2\nclique_filter = false\nzeta = 0.5',
    "cliques": 'type = "decentralized"\ngamma = 1\nzeta = 0.5',
    "leaders": 'type = "centralized"\ngamma = 2\nzeta = 0.5\nleaders = "dominating"',
    "kmp": 'type = "kmp"\ngamma = 2\nzeta = 0.5',
    "self-tuned": 'type = "kmp"\ngamma = 1\nestimator = "self-tuned"\nquiet = 0.25\nstart = "shared"',
    "origins": 'type = "origin-median"\ngamma = 2\nzeta = 0.5',
    "alone": 'type = "robust"\nzeta = 0.5',
}
NODES, ROUNDS, TTL = 6, 60, 9.0
LONELY = (15, 44)
"""When the last node loses both links, and when they come back."""
START = 1_700_000_000.0
PATIENCE = 60.0
"""Seconds for the disk."""


def mesh_text(name: str, policy: str) -> str:
    nodes = "".join(
        f'\n[[nodes]]\nname = "n{v}"\nid = {v}\naddress = "127.0.0.1:{7400 + v}"\n'
        f'neighbours = ["n{(v + 1) % NODES}"]\n'
        for v in range(NODES)
    )
    return (
        f'name = "{name}"\n\n[[games]]\nname = "mirrors"\narms = ["a", "b", "c"]\nobjective = "minimise"\n'
        f"patience = 4.0\n\n[games.policy]\n{policy}\n\n[games.moments]\neps = 0.8\nu = 4.2\nrho = 3.4\n"
        f"{nodes}"
        "\n[limits]\nretain = 12\nhave_every = 2.0\nskip_after = 6.0\nblock = 16\n"
    )


class Village:
    """Live nodes on a ring, on disks of their own, with links that break and rewards that come late.

    Everything that could differ between two runs (clock, order, chance) is given.
    """

    def __init__(self, name: str) -> None:
        self.parts, self.path = live(), Path("mesh.toml")
        self.chance = random.Random(f"{SEED} {name}")
        self.now = START
        mesh = self.parts.read_mesh(self.path)
        self.journals = [
            self.parts.Journal(
                Path(f"n{v}.data"),
                f"mesh {mesh.file.name}, node n{v}",
                fresh_epoch=lambda: 7,
                clock=lambda: self.now,
            )
            for v in range(NODES)
        ]
        self.nodes = [self.parts.Node(self.parts.node_config(mesh, f"n{v}", 7)) for v in range(NODES)]
        self.written: list[list[bytes]] = [[] for _ in range(NODES)]
        self.chosen: list[tuple[int, int, int]] = []
        self.open: list[list[Any]] = [[] for _ in range(NODES)]
        self.edges = [(v, (v + 1) % NODES) for v in range(NODES)]
        for journal, node in zip(self.journals, self.nodes, strict=True):
            journal.start(lambda n: None)
            node.tick(self.now)
            node.start()
        self._commit()
        for a, b in self.edges:
            self._link(a, b)

    def _link(self, a: int, b: int) -> None:
        for v, w in ((a, b), (b, a)):
            self.nodes[v].link_up(w, w)  # the link of a node to w is called w

    def _cut(self, a: int, b: int) -> None:
        for v, w in ((a, b), (b, a)):
            self.nodes[v].link_down(w)

    def _commit(self) -> None:
        for v, (journal, node) in enumerate(zip(self.journals, self.nodes, strict=True)):
            batch = node.take_journal()
            self.written[v] += map(self.parts.encode, batch)
            if batch:
                journal.write(batch)
        self._wait()
        for node in self.nodes:
            node.committed(node.records)

    def _wait(self) -> None:
        """Until all is on disk: a transaction bears the time of the clock, which then may go on."""
        deadline = time.monotonic() + PATIENCE
        while any(journal.backlog for journal in self.journals):
            if time.monotonic() > deadline:
                raise SystemExit(f"the disk does not take the journals: {self.journals[0].trouble}")
            time.sleep(0.0002)

    def play(self) -> None:
        for second in range(ROUNDS):
            self.now += 1.0
            if second in LONELY:  # so long that others no longer keep all that the last node has missed
                for edge in self.edges[-2:]:
                    (self._cut if second == LONELY[0] else self._link)(*edge)
            elif second % 7 == 3:
                gone = self.chance.choice(self.edges[:-2])
                self._cut(*gone)
                self._talk()
                self._link(*gone)
            for v, node in enumerate(self.nodes):
                node.tick(self.now)
                self._decide(v, node)
            self._commit()
            self._talk()
            self._commit()
            if second == ROUNDS // 2:
                for v in range(0, NODES, 2):  # the others restart from their records alone
                    self.journals[v].write_snapshot(self.parts.pack(self.nodes[v].snapshot()))

    def _decide(self, v: int, node: Any) -> None:
        waiting = self.open[v]
        if node.ready:
            token = node.choose("mirrors", self.now, TTL)
            self.chosen.append((v, token.t, token.arm))
            waiting.append(token)
        while waiting and self.chance.random() < 0.7:
            token, cost = waiting.pop(0), self.chance.gauss(1.0, 0.5)
            fate = self.chance.random()
            if fate < 0.05:
                node.abandon("mirrors", token.t)
            elif fate > 0.1:  # else it is never heard of again
                node.observe("mirrors", token.t, token.arm, -cost - 0.4 * token.arm)

    def _talk(self) -> None:
        for _ in range(3):  # a word, its answer, and what the answer asked for
            both = [pair for a, b in self.edges for pair in ((a, b), (b, a))]
            sent = [(v, w, self.nodes[v].frames(w, 1 << 40)) for v, w in both if w in self.nodes[v].links]
            for v, w, frames in sent:
                for frame in frames:
                    if v in self.nodes[w].links:
                        self.nodes[w].receive(v, frame[self.parts.head :])

    def close(self) -> None:
        for journal in self.journals:
            if not journal.close():
                raise SystemExit("the disk does not take the journals")

    def again(self) -> list[bytes]:
        """The states of nodes that start anew on these disks."""
        mesh, states = self.parts.read_mesh(self.path), []
        for v in range(NODES):
            owner = f"mesh {mesh.file.name}, node n{v}"
            journal = self.parts.Journal(Path(f"n{v}.data"), owner, fresh_epoch=lambda: 8)
            node = self.parts.Node(self.parts.node_config(mesh, f"n{v}", journal.found.epoch))
            node.restart(journal.found.state, journal.found.records)
            states.append(self.parts.pack(node.snapshot()))
            journal.close()
        return states


def journals() -> Values:
    """Per mesh: its plan, what nodes chose, wrote down, are after a restart, and export."""
    found: Values = {}
    for name, policy in MESHES.items():
        with empty_folder():
            Path("mesh.toml").write_text(mesh_text(name, policy), encoding="utf-8")
            must("mesh", "plan")
            found[f"{name}: plan"] = digest(Path("mesh.toml").read_bytes())
            village = Village(name)
            village.play()
            before = [village.parts.pack(node.snapshot()) for node in village.nodes]
            village.close()
            found[f"{name}: choices"] = digest(of_array(village.chosen))
            found[f"{name}: records"] = digest(*(b"".join(each) for each in village.written))
            found[f"{name}: state"] = digest(*before)
            found[f"{name}: state after a restart"] = digest(*village.again())
            folders = [f"n{v}.data" for v in range(NODES)]
            for way, options in (("long", []), ("wide", ["--wide"])):
                must("mesh", "export", *folders, "--out", f"{way}.csv", *options)
                found[f"{name}: log, {way}"] = digest(Path(f"{way}.csv").read_bytes())
    return found


# --- 5. errors ------------------------------------------------------------------------------------------

SPEC = """name = "mine"
seed = 5
horizon = 30
trials = 5

[network]
kind = "ring"
n = 6

[arms]
law = "alpha-stable"
alpha = 1.9
K = 3

[[policies]]
type = "kmp"
zeta = 1.0

[[policies]]
type = "robust"
zeta = 1.0

[[claims]]
kind = "beats"
policy = "KMP"
than = "Robust"
"""
# What is replaced in the spec, and by what.
BAD_SPECS: list[tuple[str, str]] = [
    ("seed = 5", "sede = 5"),
    ("seed = 5", "seed = -1"),
    ("seed = 5", 'seed = "x"'),
    ("seed = 5\n", ""),
    ('"mine"', '"My Run"'),
    ("horizon = 30", "horizon = 2"),
    ("trials = 5\n", ""),
    ('"ring"', '"rings"'),
    ("n = 6", 'n = "six"'),
    ("n = 6", "m = 6"),
    ("alpha = 1.9", "alpha = 2.5"),
    ("alpha = 1.9", "alpha = 1.0"),
    ("K = 3", "means = [0.2, 0.2]"),
    ("K = 3", "K = 1"),
    ('"kmp"', '"kpm"'),
    ('type = "kmp"', 'type = "kmp"\ngama = 1'),
    ('type = "kmp"', 'type = "kmp"\ngamma = -1'),
    ('type = "kmp"', 'type = "kmp"\nestimator = "trimed"'),
    ('type = "kmp"', 'type = "kmp"\nc = 1.0'),
    ('type = "kmp"', 'type = "no_such_module:Greedy"'),
    ('than = "Robust"', 'than = "Robts"'),
    ('kind = "beats"', 'kind = "beast"'),
    ("[arms]", '[channel]\ntype = "imperfect"\np = 1.5\n\n[arms]'),
    ("[arms]", '[sweep]\n"network.x" = [1, 2]\n\n[arms]'),
    ("[arms]", "[arms"),
]
BAD_WORDS: list[str] = [
    "rnu spec.toml",
    "run",
    "run gone.toml",
    "run spec.toml --trials 0",
    "run spec.toml --jobs two",
    "run spec.toml --scale huge",
    "run spec.toml --executor gpu",
    "run spec.toml --quick",
    "reproduce fig9",
    "show nowhere",
    "compare nowhere elsewhere",
    "report nowhere",
    "list polices",
    "network ring",
    "network rings n=6",
    "simulate --policy kpm",
    "simulate --network ring",
    "simulate --arms gaussian,K=5",
    "coverage --estimator mode",
    "data fetch nothing",
    "advise gone.csv --minimise",
    "advise sheet.xlsx --minimise",
    "advise fig9",
    "advise log.csv",
    "advise log.csv --minimise --column east",
    "advise log.csv --minimise --network ring_n=7",
    "advise log.csv --minimise --horizon 50",
    "advise log.csv --minimise --estimator mode",
    "advise short.csv --minimise",
    "advise words.csv --minimise",
    "advise empty.csv --minimise",
    "advise log.csv --like gone.toml",
    "mesh show",
    "mesh show --mesh gone.toml",
    "mesh add n0 127.0.0.1:7400 --mesh good.toml",
    "mesh add new nowhere --mesh good.toml",
    "mesh remove n9 --mesh good.toml",
    "mesh export nowhere --mesh good.toml",
    "mesh init test --arm a --objective more",
    "node --name n9 --mesh good.toml",
    "node --name n0 --mesh good.toml",
]
BAD_MESHES: list[tuple[str, str]] = [
    ('name = "n1"', 'name = "n0"'),
    ("id = 1", "id = 0"),
    ("127.0.0.1:7401", "nowhere"),
    ('neighbours = ["n1"]', 'neighbours = ["n99"]'),
    ('arms = ["a", "b", "c"]', 'arms = ["a"]'),
    ("patience", "patiense"),
    ('objective = "minimise"', 'objective = "less"'),
    ('type = "kmp"', 'type = "kpm"'),
    ('type = "kmp"', 'type = "kmp"\nestimator = "catoni"'),
    ('type = "kmp"', 'type = "consensus"'),
    ("patience = 4.0", "patience = 4.0\nrestart = 5"),
    ("eps = 0.8", "eps = 1.8"),
]


def bad_calls() -> dict[str, Callable[[], object]]:
    """Wrong arguments in Python."""
    bandit, ring = rm.Bandit([rm.Gaussian(loc=m) for m in (0.0, 1.0)]), rm.Network.ring(4)

    def play(policy: Any = "robust", **options: Any) -> object:
        usual = {"horizon": 20, "rng": 0, "engine": "reference"}
        return wrong.simulate(bandit, ring, policy, **usual | options)

    return {
        "one arm": lambda: rm.Bandit([rm.Gaussian()]),
        "no gap": lambda: rm.Bandit([rm.Gaussian(), rm.Gaussian(scale=2)]),
        "no mean": lambda: rm.Bandit([rm.AlphaStable(alpha=1.0), rm.Gaussian()]),
        "eps above one": lambda: rm.Moments(eps=1.1, u=1.0, rho=1.0),
        "negative gamma": lambda: rm.KMPUCB(gamma=-1),
        "gamma in words": lambda: wrong.CentralizedMPUCB(gamma="all"),
        "a misspelt setting": lambda: wrong.KMPUCB(gama=1),
        "c and zeta": lambda: rm.RobustUCB(c=1.0, zeta=1.0),
        "a word for an estimator": lambda: wrong.RobustUCB(estimator="trimmed"),
        "theory without a lemma": lambda: rm.RobustUCB(estimator=rm.EmpiricalMean(), c="theory"),
        "no rounds": lambda: play(horizon=0),
        "no seed": lambda: play(rng=None),
        "a misspelt option": lambda: play(horizn=3),
        "unknown engine": lambda: play(engine="warp"),
        "unknown policy": lambda: play("robuts"),
        "unknown setting": lambda: play({"type": "kmp", "gama": 1}),
        "unknown channel": lambda: play(channel="telepathy"),
        "late checkpoint": lambda: play(checkpoints=[21]),
        "a class for a policy": lambda: play(rm.KMPUCB),
        "consensus with delay": lambda: play("consensus", channel=rm.Imperfect(delay=2)),
        "dducb with churn": lambda: play("dducb", churn=rm.Churn(up=5, down=5)),
        "liars beside consensus": lambda: play("consensus", byzantine=rm.Byzantine(agents=1)),
        "a liar nobody knows": lambda: play("kmp", byzantine=rm.Byzantine(agents=[9])),
        "an outage without a link": lambda: play(outages=[(0, 2, 1, 5)]),
        "loss above one": lambda: rm.Imperfect(p=1.5),
        "delay in words": lambda: wrong.Imperfect(delay="long"),
        "corruption of no kind": lambda: rm.Corruption(rate=0.1),
        "churn of no length": lambda: rm.Churn(up=0, down=3),
        "an attack nobody knows": lambda: wrong.Byzantine(agents=1, attack="sulk"),
        "a flat table": lambda: rm.Replay(np.zeros((4, 3))),
        "a network without size": lambda: wrong.Network.erdos_renyi(5, rng=1),
        "edges of nothing": lambda: wrong.Network.from_edges(5),
        "a run that is not there": lambda: rm.load("nowhere"),
    }


def errors() -> Values:
    """What is said of typical mistakes, as text."""
    found: Values = {}
    with empty_folder() as folder:
        good = mesh_text("test", MESHES["kmp"])
        Path("spec.toml").write_text(SPEC, encoding="utf-8")
        Path("good.toml").write_text(good, encoding="utf-8")
        write_log(Path("log.csv"), logs()["stationary"])
        Path("short.csv").write_text("a,b\n1,2\n3,4\n5,6\n", encoding="utf-8")
        Path("words.csv").write_text("a,b\n1,2\n3,often\n5,6\n", encoding="utf-8")
        Path("empty.csv").write_text("", encoding="utf-8")
        Path("sheet.xlsx").write_bytes(b"PK")
        for name, call in bad_calls().items():
            found[f"python: {name}"] = _refusal(call)
        for words in BAD_WORDS:
            found[f"rumormill {words}"] = _complaint(*(each.replace("_", " ") for each in words.split()))
        for old, new in BAD_SPECS:
            Path("bad.toml").write_text(_replaced(SPEC, old, new), encoding="utf-8")
            found[f"spec: {old!r} -> {new!r}"] = _complaint("run", "bad.toml", "--no-report")
        for old, new in BAD_MESHES:
            Path("bad.toml").write_text(_replaced(good, old, new), encoding="utf-8")
            found[f"mesh: {old!r} -> {new!r}"] = _complaint("mesh", "plan", "--mesh", "bad.toml")
        return {name: text.replace(str(folder), "FOLDER") for name, text in found.items()}


NO_COMPLAINT = "no complaint"


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise SystemExit(f"{old!r} is not in the text to be spoilt")
    return text.replace(old, new, 1)


def _refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return NO_COMPLAINT


def _complaint(*words: str) -> str:
    answer = said(*words)
    return f"{answer.err.strip()} [{answer.code}]" if answer.code else NO_COMPLAINT


# --- comparing ------------------------------------------------------------------------------------------

GROUPS: dict[str, Callable[[], Values]] = {
    "specs": specs,
    "games": games,
    "advice": advice,
    "journals": journals,
    "errors": errors,
}


def worked_out(group: str) -> tuple[Values, float]:
    """The values of a group, and the CPU seconds that they took."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notices of slow engines and the like, meant for people
        return GROUPS[group](), time.process_time() - started


def stored() -> dict[str, Values]:
    found: dict[str, Values] = json.loads(STORED.read_text(encoding="utf-8")) if STORED.is_file() else {}
    return found


def write(groups: Sequence[str]) -> int:
    kept = stored()
    for group in groups:
        values, seconds = worked_out(group)
        for name, value in values.items():
            if value.startswith(SKIPPED):
                print(f"{group}: {name}: {value}")
                values[name] = kept.get(group, {}).get(name, value)
        kept[group] = {name: value for name, value in values.items() if not value.startswith(SKIPPED)}
        refused = sum(value == "refused" for value in values.values())
        print(f"{group:9s} {len(kept[group]):4d} frozen, {refused} refused, {seconds:.0f} s", flush=True)
    ordered = {group: kept[group] for group in GROUPS if group in kept}
    STORED.write_text(json.dumps(ordered, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def check(groups: Sequence[str]) -> int:
    kept, named = stored(), tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8"))["exceptions"]
    table = [f"{'group':9s} {'frozen':>6s} {'equal':>6s} {'named':>6s} {'CHANGED':>8s} {'CPU s':>6s}"]
    unnamed = 0
    for group in groups:
        if group not in kept:
            raise SystemExit(f"nothing of {group} is frozen: run --write at the commit to compare with")
        before, seconds = kept[group], 0.0
        try:
            after, seconds = worked_out(group)
        except (Exception, SystemExit):
            traceback.print_exc()
            print(f"{group}: NOT WORKED OUT, see above", flush=True)
            table.append(f"{group:9s} {len(before):6d} not worked out")
            unnamed += len(before)
            continue
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        # What was not frozen for want of data is not missed.
        skipped = [name for name in changed if name not in before and after[name].startswith(SKIPPED)]
        why = {name: _reason(named, f"{group}: {name}") for name in changed if name not in skipped}
        for name in skipped:
            print(f"{group}: {name}: {after[name]}")
        for name, reason in why.items():
            print(f"{group}: {name}: {'CHANGED' if reason is None else f'changed, as named: {reason}'}")
            print(*_difference(before.get(name), after.get(name)), sep="\n", flush=True)
        left = sum(reason is None for reason in why.values())
        equal = sum(after.get(name) == value for name, value in before.items())
        unnamed += left
        table.append(f"{group:9s} {len(before):6d} {equal:6d} {len(why) - left:6d} {left:8d} {seconds:6.0f}")
    print(*table, sep="\n")
    return 1 if unnamed else 0


def _reason(named: Mapping[str, str], name: str) -> str | None:
    """Why a difference is expected; names may hold * and ?."""
    fits = (why for pattern, why in named.items() if name == pattern or fnmatchcase(name, pattern))
    return next(fits, None)


def _difference(before: str | None, after: str | None) -> list[str]:
    """Before and after; below each text a line that marks where they differ."""
    if before is None or after is None:
        return [f"    + {after}" if before is None else f"    - {before}"]
    marks = [line for line in difflib.ndiff([before], [after]) if not (_are_sums(before) and line[0] == "?")]
    return [f"    {line.rstrip()}" for line in marks]


def _are_sums(text: str) -> bool:
    """Where sums differ says nothing."""
    return all(len(word) >= 32 for word in text.split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="store what is played and said now")
    what.add_argument("--check", action="store_true", help="compare with what is stored")
    parser.add_argument("--only", action="append", choices=GROUPS, help="this group; may be repeated")
    given = parser.parse_args()
    groups = given.only or list(GROUPS)
    return write(groups) if given.write else check(groups)


if __name__ == "__main__":
    sys.exit(main())
