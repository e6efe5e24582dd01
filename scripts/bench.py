"""`make bench`: how fast the compiled engine is, as ratios to a bare loop measured in the same run.

Every workload runs in a process of its own, so that its peak memory is its own. Times are CPU seconds of
one thread, the best of several repeats with floor and kernel in turn: other work on the machine changes
them little.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

import rumormill as rm
from rumormill.engine import play_trial, prepare
from rumormill.engine.result import Opening
from rumormill.seeds import Role, root_seed, stream_seed

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.floor import floor_loop  # noqa: E402

K = 5
REPEATS = 5

AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2"}
"""Compiles for a processor without AVX-512."""

NETWORKS: dict[str, Callable[[], rm.Network]] = {
    "ER(200, .7)": lambda: rm.Network.erdos_renyi(200, 0.7, rng=1),
    "BA(200, 5)": lambda: rm.Network.barabasi_albert(200, 5, rng=1),
    "ring(200)": lambda: rm.Network.ring(200),
    "snowball(500) of BA(10000, 4)": lambda: rm.Network.barabasi_albert(10_000, 4, rng=1).subgraph(
        500, rng=1
    ),
    "BA(200, 3)": lambda: rm.Network.barabasi_albert(200, 3, rng=1),
    "BA(20000, 3)": lambda: rm.Network.barabasi_albert(20_000, 3, rng=1),
    "ER(200, .05)": lambda: rm.Network.erdos_renyi(200, 0.05, rng=1),
    "ring(20000)": lambda: rm.Network.ring(20_000),
    "ER(50, .3)": lambda: rm.Network.erdos_renyi(50, 0.3, rng=1),
}

POLICIES: dict[str, Callable[[int], Any]] = {
    "decentralized": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False),
    "clique filter": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma),
    "centralized": lambda gamma: rm.CentralizedMPUCB(gamma=gamma),
    "kmp": lambda gamma: rm.KMPUCB(gamma=gamma),
    "consensus": lambda gamma: rm.ConsensusUCB(),
    "robust": lambda gamma: rm.RobustUCB(),
    "default": lambda gamma: rm.Default(gamma=gamma),
    "thompson": lambda gamma: rm.ThompsonKMP(gamma=gamma),
}

# (network, gamma, horizon, policy, goal on the ratio to the floor or None)
WORKLOADS: list[tuple[str, int, int, str, float | None]] = [
    ("ER(200, .7)", 1, 10_000, "decentralized", 0.5),
    ("ER(200, .7)", 1, 10_000, "kmp", 0.9),
    ("ER(200, .7)", 1, 10_000, "centralized", None),
    ("ER(200, .7)", 1, 10_000, "clique filter", None),
    ("ER(200, .7)", 1, 10_000, "consensus", None),
    ("ER(200, .7)", 1, 10_000, "robust", None),
    ("snowball(500) of BA(10000, 4)", 1, 10_000, "consensus", None),
    ("BA(200, 5)", 2, 10_000, "decentralized", None),
    ("BA(200, 5)", 2, 10_000, "kmp", None),
    ("ring(200)", 10, 10_000, "decentralized", None),
    ("ring(200)", 10, 10_000, "kmp", None),
    ("snowball(500) of BA(10000, 4)", 2, 2_000, "decentralized", None),
    ("snowball(500) of BA(10000, 4)", 2, 2_000, "kmp", None),
    ("BA(200, 3)", 1, 10_000, "decentralized", None),
    ("BA(20000, 3)", 1, 1_000, "decentralized", None),
    ("ER(50, .3)", 1, 1_000, "decentralized", None),
    ("ER(50, .3)", 1, 10_000, "decentralized", None),
    ("ER(50, .3)", 1, 100_000, "decentralized", None),
]


# (network, gamma, horizon, policy, what goes wrong, goal on the ratio to the perfect kernel or None)
IMPERFECT: list[tuple[str, int, int, str, str, float | None]] = [
    ("ER(200, .7)", 1, 3_000, "decentralized", "p=.7", 2.0),
    ("ER(200, .7)", 1, 3_000, "kmp", "p=.7", 2.0),
    ("ER(200, .7)", 1, 3_000, "centralized", "p=.7", None),
    ("ER(200, .7)", 1, 3_000, "clique filter", "p=.7", None),
    ("ER(200, .7)", 1, 3_000, "decentralized", "p=.7 per copy", 2.0),
    ("ER(200, .7)", 1, 1_000, "decentralized", "delay=3", None),
    ("ER(200, .7)", 1, 3_000, "decentralized", "churn", None),
    ("ER(200, .7)", 1, 3_000, "decentralized", "corruption", None),
    ("ER(200, .7)", 2, 300, "decentralized", "p=.7", None),
    ("BA(200, 3)", 1, 3_000, "decentralized", "p=.7", None),
    ("ER(200, .05)", 2, 1_000, "decentralized", "p=.7", None),
    ("ER(200, .05)", 2, 1_000, "decentralized", "p=.7 per copy", None),
    ("ER(200, .05)", 2, 1_000, "decentralized", "p=.7 delay=3", None),
    ("ER(200, .05)", 2, 1_000, "kmp", "p=.7", None),
    ("BA(200, 5)", 2, 1_000, "decentralized", "p=.7", None),
    ("BA(20000, 3)", 1, 30, "decentralized", "p=.7", None),
    ("ring(20000)", 3, 30, "decentralized", "p=.7", None),
]
WORLDS: dict[str, Callable[[], rm.World]] = {
    "p=.7": lambda: rm.World(channel=rm.Imperfect(p=0.7)),
    "p=.7 per copy": lambda: rm.World(channel=rm.Imperfect(p=0.7, per="copy")),
    "delay=3": lambda: rm.World(channel=rm.Imperfect(delay=3)),
    "p=.7 delay=3": lambda: rm.World(channel=rm.Imperfect(p=0.7, delay=3)),
    "churn": lambda: rm.World(churn=rm.Churn(up=200, down=50)),
    "corruption": lambda: rm.World(corruption=rm.Corruption(rate=0.1, shift=1000.0)),
}


def bandit() -> rm.Bandit:
    means = np.random.default_rng(0).random(K)
    return rm.Bandit([rm.AlphaStable(alpha=1.9, loc=float(mean)) for mean in means])


def measure(network_name: str, gamma: int, horizon: int, policy_name: str) -> dict[str, float]:
    """One workload, in this process."""
    from rumormill.engine.compiled.reach import build_reach

    source, network, policy = bandit(), NETWORKS[network_name](), POLICIES[policy_name](gamma)
    marks = np.array([horizon])
    started = time.thread_time()
    layout = prepare(policy, network, K, engine="fast").layout
    prepare_s = time.thread_time() - started
    assert layout is not None
    reach, sources = build_reach(network, gamma, np.arange(network.n_agents, dtype=np.int32), None)
    deliveries = len(sources.ids) * horizon

    # The floor: the same deliveries, with the arms and rewards of one round.
    seed = stream_seed(root_seed(7), 0, Role.REWARDS)
    xs = source.stream(seed, network.n_agents, 1).block(0, 1)[0, :, 0].copy()
    arms = np.where(np.arange(network.n_agents) % 7 == 0, 1, 0).astype(np.int32)
    n, total = np.ones((K, network.n_agents)), np.zeros((K, network.n_agents))
    needs = np.ones(network.n_agents)
    floor_rounds = max(1, min(horizon, int(2e7 / max(len(sources.ids), 1))))
    masks = np.zeros((max(len(reach.words), 1), network.n_agents, network.n_agents), dtype=np.float32)
    for mask, words in zip(masks, reach.words, strict=False):
        bits = np.unpackbits(np.ascontiguousarray(words.T).view(np.uint8), axis=1, bitorder="little")
        mask[:] = bits[:, : network.n_agents]
    floor_loop(1, reach, masks, arms, xs, needs, n, total)

    def floor() -> float:
        started = time.thread_time()
        floor_loop(floor_rounds, reach, masks, arms, xs, needs, n, total)
        return (time.thread_time() - started) * horizon / floor_rounds

    def trial(rounds: int) -> tuple[float, float]:
        kernel_s = draw_s = 0.0
        started = time.thread_time()
        run = layout.start(Opening(source, horizon, marks, False, stream_seed(root_seed(7), 0)))
        kernel_s += time.thread_time() - started
        rewards = source.stream(seed, network.n_agents, horizon)
        step = max(64, 64 * (layout.rounds_per_block // 64))
        for start in range(0, rounds, step):
            started = time.thread_time()
            draws = rewards.block(start, min(start + step, horizon))
            drawn = time.thread_time()
            run.advance(start + 1, draws, rewards)
            draw_s += drawn - started
            kernel_s += time.thread_time() - drawn
        return kernel_s, draw_s

    trial(min(horizon, 64))  # warm: compiled code loaded
    repeats = [(floor(), *trial(horizon)) for _ in range(REPEATS)]
    floor_s, kernel_s, draw_s = np.array(repeats).min(axis=0)
    pulls = network.n_agents * horizon
    return {
        "agents": network.n_agents,
        "deliveries_per_round": len(sources.ids),
        "prepare_s": prepare_s,
        "trial_s": kernel_s,
        "ns_per_delivery": kernel_s / deliveries * 1e9,
        "floor_ns_per_delivery": floor_s / deliveries * 1e9,
        "ratio_to_floor": kernel_s / floor_s,
        "million_pulls_per_s": pulls / kernel_s / 1e6,
        "million_draws_per_s": pulls / draw_s / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_imperfect(
    network_name: str, gamma: int, horizon: int, policy_name: str, world_name: str
) -> dict[str, float]:
    """One workload in an imperfect world and in a perfect one, in turns; and some rounds of the reference."""
    source, network, policy = bandit(), NETWORKS[network_name](), POLICIES[policy_name](gamma)
    own, marks = stream_seed(root_seed(7), 0), np.array([horizon])
    worlds = {"imperfect": WORLDS[world_name](), "perfect": rm.World()}
    layouts = {name: prepare(policy, network, K, engine="fast", world=worlds[name]).layout for name in worlds}

    def trial(name: str, rounds: int) -> float:
        layout = layouts[name]
        assert layout is not None
        rewards = source.stream(stream_seed(root_seed(7), 0, Role.REWARDS), network.n_agents, horizon)
        kernel_s = -time.thread_time()
        run = layout.start(Opening(source, horizon, marks, False, own))
        kernel_s += time.thread_time()
        step = max(64, 64 * (layout.rounds_per_block // 64))
        for start in range(0, rounds, step):
            draws = rewards.block(start, min(start + step, horizon))
            kernel_s -= time.thread_time()
            run.advance(start + 1, draws, rewards)
            kernel_s += time.thread_time()
        return kernel_s

    for name in worlds:
        trial(name, min(horizon, 64))  # warm: compiled code loaded
    repeats = [[trial(name, horizon) for name in worlds] for _ in range(3)]
    imperfect_s, perfect_s = np.array(repeats).min(axis=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"trial_s": imperfect_s, "to_perfect": imperfect_s / perfect_s, "peak_mb": peak}
    if network.n_agents <= 200 and gamma > 1:  # the reference takes a second for some rounds of these
        contender, few = prepare(policy, network, K, engine="reference", world=worlds["imperfect"]), 40
        seconds = []
        for rounds in (10, few):
            started = time.thread_time()
            play_trial([contender], source, rounds, own, np.array([rounds]))
            seconds.append(time.thread_time() - started)
        found["reference_to_it"] = (seconds[1] - seconds[0]) / (few - 10) / (imperfect_s / horizon)
    return found


def against_kmp() -> dict[str, float]:
    """The default and Thompson draws beside KMP, each with its own γ: nanoseconds a pull, in turns."""
    source, network, horizon = bandit(), NETWORKS["ER(50, .3)"](), 5_000
    policies = {"kmp": rm.KMPUCB(), "default": rm.Default(), "thompson": rm.ThompsonKMP()}
    best = dict.fromkeys(policies, np.inf)
    for repeat in range(REPEATS + 1):
        for name, policy in policies.items():
            rounds = horizon if repeat else 64  # warm: compiled code loaded
            started = time.thread_time()
            rm.simulate(source, network, policy, horizon=rounds, rng=7, engine="fast", workers=1)
            per_pull = (time.thread_time() - started) / network.n_agents / rounds * 1e9
            best[name] = min(best[name], per_pull) if repeat else np.inf
    return best


def formulas() -> dict[str, float]:
    """How many times faster a formula is compiled, inside a compiled loop, than plain, called by an agent."""
    import numba

    from helpers.kernel_comparisons import COMPARISONS

    found = {}
    for comparison in COMPARISONS:
        cases = comparison.cases(np.random.default_rng(1), 2_000)
        columns = [np.array(column) for column in zip(*cases, strict=True)]
        several = isinstance(comparison.plain(*cases[0]), tuple)
        names = [f"c{i}" for i in range(len(columns))]
        text = f"def loop({', '.join(names)}):\n total = 0.0\n for i in range(len(c0)):\n  "
        text += f"total += f({', '.join(f'{name}[i]' for name in names)}){'[0]' if several else ''}\n"
        scope: dict[str, Any] = {"f": comparison.compiled}
        exec(text + " return total", scope)  # a loop with as many columns as the formula has arguments
        loop = numba.njit(error_model="numpy")(scope["loop"])
        loop(*columns)
        seconds = []
        for call in (lambda: [comparison.plain(*case) for case in cases], lambda: loop(*columns)):  # noqa: B023
            best = np.inf
            for _ in range(REPEATS):
                started = time.perf_counter()
                call()
                best = min(best, time.perf_counter() - started)
            seconds.append(best)
        found[comparison.name] = seconds[0] / seconds[1]
    return found


def against_reference() -> dict[str, float]:
    """The same trial on both engines: ER(50, .3), T = 1000, γ half the diameter as in the paper."""
    source, network = bandit(), NETWORKS["ER(50, .3)"]()
    policy = POLICIES["decentralized"](network.resolve_gamma("half-diameter"))
    seconds = {}
    engines: tuple[tuple[Literal["fast", "reference"], int], ...] = (("fast", 5), ("reference", 1))
    for engine, repeats in engines:
        rm.simulate(source, network, policy, horizon=20, rng=7, engine=engine, workers=1)
        best = np.inf
        for _ in range(repeats):
            started = time.thread_time()
            rm.simulate(source, network, policy, horizon=1000, rng=7, engine=engine, workers=1)
            best = min(best, time.thread_time() - started)
        seconds[engine] = best
    return {**{f"{k}_s": v for k, v in seconds.items()}, "ratio": seconds["reference"] / seconds["fast"]}


def drawing() -> dict[str, float]:
    """Millions of draws a second, in blocks as the engine asks for them; the floor: numpy's numbers alone."""
    laws = {
        "alpha-stable": rm.AlphaStable(alpha=1.9),
        "gaussian": rm.Gaussian(),
        "pareto": rm.Pareto(tail=1.9),
        "student-t": rm.StudentT(df=1.9),
    }
    agents, rounds, rng, room = 200, 256, np.random.default_rng(1), np.empty(12_800)

    def floor(_: int) -> None:
        """A uniform and an exponential for each draw, as a stable one takes them."""
        for _ in range(agents * rounds // len(room)):
            rng.random(out=room)
            rng.standard_exponential(out=room)

    def speed(call: Callable[[int], object]) -> float:
        best = np.inf
        for i in range(40):
            started = time.thread_time()
            call(i)
            best = min(best, time.thread_time() - started)
        return agents * rounds / best / 1e6

    def block(law: Any) -> Callable[[int], object]:
        stream = rm.Bandit([law.at_mean(0.0), law.at_mean(1.0)]).stream(root_seed(7), agents, 40 * rounds)
        return lambda i: stream.block(i * rounds, (i + 1) * rounds)

    return {"floor": speed(floor), **{name: speed(block(law)) for name, law in laws.items()}}


def start_up() -> dict[str, float]:
    """A fresh process with compiled code on disk: until the import is done, until the first trial is done."""
    code = (
        "import time; a = time.perf_counter(); import rumormill as rm; b = time.perf_counter();"
        "s = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)]);"
        "rm.simulate(s, rm.Network.ring(8), rm.KMPUCB(gamma=1), horizon=10, rng=1);"
        "c = time.perf_counter(); print(b - a, c - a)"
    )
    runs = [
        [
            float(x)
            for x in subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout.split()
        ]
        for _ in range(3)
    ]
    imported, first_trial = np.array(runs[1:]).min(axis=0)
    return {"import_s": imported, "first_trial_s": first_trial}


def compilation() -> dict[str, float]:
    """How long what the demo needs is compiled, with nothing on disk."""
    from rumormill.experiments.plan import plan_of
    from rumormill.experiments.run.cache import contenders
    from rumormill.experiments.spec.reading import at_scale, named_spec

    assert "numba" not in sys.modules, "it reads where compiled code is kept when it is imported"
    with tempfile.TemporaryDirectory() as nothing:
        os.environ["NUMBA_CACHE_DIR"] = nothing
        from rumormill.kernels.jit import COMPILING

        point = plan_of(at_scale(named_spec("fig1a"), "quick")).points[0]
        play_trial(contenders(point, 0), point.bandit(0), 50, root_seed(7), np.array([50]))
    return {"compile_s": COMPILING.seconds}


def in_own_process(
    call: str, script: Path = Path(__file__), environment: dict[str, str] | None = None
) -> dict[str, float]:
    """One measurement in a fresh process, so that its memory is its own."""
    command = [sys.executable, str(script), "--one", call]
    given = {**os.environ, **(environment or {})}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=given).stdout
    result: dict[str, float] = json.loads(out)
    return result


def one(call: Any) -> dict[str, float]:
    """A workload by its description, or one of the special measurements by its name."""
    special = {
        "reference": against_reference,
        "start": start_up,
        "compilation": compilation,
        "formulas": formulas,
        "draws": drawing,
        "against kmp": against_kmp,
    }
    if isinstance(call, str):
        return special[call]()
    return measure(*call) if len(call) == 4 else measure_imperfect(*call)


class Earlier:
    """Another commit, checked out beside this one and measured by its own script."""

    def __init__(self, commit: str) -> None:
        self.commit = commit
        self.folder = Path(tempfile.mkdtemp(prefix="rumormill-bench-"))

    def __enter__(self) -> Earlier:
        add = ["git", "worktree", "add", "--detach", str(self.folder), self.commit]
        subprocess.run(add, check=True, capture_output=True, cwd=ROOT)
        return self

    def __exit__(self, *error: object) -> None:
        remove = ["git", "worktree", "remove", "--force", str(self.folder)]
        subprocess.run(remove, check=True, capture_output=True, cwd=ROOT)

    def one(self, call: str) -> dict[str, float]:
        script = self.folder / "scripts" / "bench.py"
        return in_own_process(call, script, {"PYTHONPATH": str(self.folder / "src")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="measure one workload and print JSON (used by the script itself)")
    parser.add_argument("--out", default="bench.json", help="where the numbers go")
    parser.add_argument("--against", metavar="COMMIT", help="measure another commit in the same run")
    parser.add_argument("--rounds", type=int, default=2, help="how often both commits take turns")
    parser.add_argument("--only", default="", help="against: only workloads whose line contains this")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(json.loads(options.one))))
    elif options.against:
        compare(options.against, options.rounds, options.only)
    else:
        everything(Path(options.out))


def compare(commit: str, rounds: int, only: str = "") -> None:
    """Every workload on both commits in turns, the best of each: a table for a page."""
    print(f"| CPU seconds a trial | γ | T | policy | {commit} | this tree | new / old |")
    print("|---|---|---|---|---|---|---|")
    with Earlier(commit) as earlier:
        for *where, _goal in (*WORKLOADS, *IMPERFECT):
            network, gamma, horizon, *who = where
            head = f"| {network} | {gamma} | {horizon:,} | {', '.join(map(str, who))} |"
            if only not in head:
                continue
            call = json.dumps(where)
            old, new = np.inf, np.inf
            try:
                for _ in range(rounds):
                    old = min(old, earlier.one(call)["trial_s"])
                    new = min(new, in_own_process(call)["trial_s"])
            except subprocess.CalledProcessError as failed:
                why = failed.stderr.strip().splitlines()[-1]
                print(f"{head} not measured: {why} | | |", flush=True)
                continue
            print(f"{head} {old:.3f} | {new:.3f} | {new / old:.2f} |", flush=True)


def imperfect_rows() -> list[dict[str, Any]]:
    """What goes wrong costs: beside the perfect kernel, and beside the reference engine in the same world."""
    rows = []
    print(
        f"\n{'network':30} {'γ':>2} {'T':>6} {'policy':14} {'world':14} {'s/trial':>8} {'/perfect':>8} "
        f"{'goal':>5} {'reference/it':>12} {'MB':>5}"
    )
    for network, gamma, horizon, policy, world, goal in IMPERFECT:
        row = in_own_process(json.dumps([network, gamma, horizon, policy, world]))
        rows.append({"network": network, "gamma": gamma, "policy": policy, "world": world, **row})
        reference = f"{row['reference_to_it']:12.0f}" if "reference_to_it" in row else " " * 12
        print(
            f"{network:30} {gamma:2} {horizon:6} {policy:14} {world:14} {row['trial_s']:8.3f} "
            f"{row['to_perfect']:8.2f} {goal or '':>5} {reference} {row['peak_mb']:5.0f}",
            flush=True,
        )
    return rows


def processor() -> str:
    """What LLVM compiles for, and whether it has AVX-512."""
    from llvmlite import binding

    wide = binding.get_host_cpu_features().get("avx512f", False)
    return f"{binding.get_host_cpu_name()}, {'with' if wide else 'without'} AVX-512"


def everything(out: Path) -> None:
    rows = []
    print("CPU seconds of one thread, warm; floor = count + compare + add over the same deliveries")
    print(f"compiled for this processor ({processor()}); AVX2: ratio when both are compiled for Haswell\n")
    print(
        f"{'network':30} {'γ':>2} {'T':>6} {'policy':14} {'s/trial':>8} {'ns/deliv.':>9} {'floor':>6} "
        f"{'ratio':>6} {'AVX2':>6} {'goal':>5} {'Mpulls/s':>8} {'Mdraws/s':>8} {'MB':>5}"
    )
    for network, gamma, horizon, policy, goal in WORKLOADS:
        call = json.dumps([network, gamma, horizon, policy])
        row = in_own_process(call)
        row["avx2_ratio_to_floor"] = in_own_process(call, environment=AVX2)["ratio_to_floor"]
        rows.append(
            {"network": network, "gamma": gamma, "horizon": horizon, "policy": policy, "goal": goal, **row}
        )
        print(
            f"{network:30} {gamma:2} {horizon:6} {policy:14} {row['trial_s']:8.3f} "
            f"{row['ns_per_delivery']:9.2f} "
            f"{row['floor_ns_per_delivery']:6.2f} {row['ratio_to_floor']:6.2f} "
            f"{row['avx2_ratio_to_floor']:6.2f} {goal or '':>5} "
            f"{row['million_pulls_per_s']:8.2f} {row['million_draws_per_s']:8.1f} {row['peak_mb']:5.0f}",
            flush=True,
        )
    imperfect = imperfect_rows()
    reference = in_own_process('"reference"')
    start = in_own_process('"start"')
    print(f"\nreference / fast on ER(50, .3), T = 1000: {reference['ratio']:.0f} (goal: 1000)")
    print(f"import {start['import_s']:.2f} s (goal 0.3)")
    print(f"first trial of a second process {start['first_trial_s']:.2f} s (goal 2)")
    compiling = in_own_process('"compilation"')
    print(f"compiling what the demo needs {compiling['compile_s']:.1f} s (goal 10)")
    pulls = in_own_process('"against kmp"')
    told = ", ".join(f"{name} {ns:.0f} ({ns / pulls['kmp']:.1f} ×, goal 2)" for name, ns in pulls.items())
    print(f"ns a pull on ER(50, .3), T = 5000: {told}")
    draws = in_own_process('"draws"')
    told = ", ".join(f"{name} {speed:.0f}" for name, speed in draws.items())
    print(f"\nmillion draws a second, 200 agents (floor: numpy's uniforms and exponentials alone): {told}")
    print("\na formula compiled, against the plain one called by an agent (times faster):")
    ratios = in_own_process('"formulas"')
    print("  ".join(f"{name} {ratio:.0f}" for name, ratio in ratios.items()))
    found = {
        "workloads": rows,
        "imperfect": imperfect,
        "reference": reference,
        "start": {**start, **compiling},
        "against_kmp": pulls,
        "draws": draws,
        "formulas": ratios,
    }
    out.write_text(json.dumps(found, indent=1))
    print(f"numbers in {out}")


if __name__ == "__main__":
    main()
