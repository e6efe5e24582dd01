"""Where the time of four commands goes: `simulate` (the first of a process), `run`, `reproduce`, `advise`.

    python scripts/flame.py [NAME ...]

Prints the widest bars; the stacks are in NAME.folded, for speedscope or flamegraph.pl.

All Python threads are sampled every 5 ms; threads that wait are left out. A bar is the innermost function of
rumormill with the library that it is in.
"""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve()
EVERY_S = 0.005
WAITING = ("wait", "get", "join", "select", "acquire", "_wait_for_tstate_lock", "_run_once")
DRIVER = "rumormill.engine.workers", "run"  # waits for its workers


def stack_of(frame: FrameType | None) -> list[tuple[str, str]]:
    """(module, function) from the outermost on."""
    found = []
    while frame is not None:
        found.append((str(frame.f_globals.get("__name__", "?")), frame.f_code.co_name))
        frame = frame.f_back
    return found[::-1]


def sampled(call: Callable[[], object]) -> Counter[tuple[tuple[str, str], ...]]:
    """How often each stack was seen while the call ran."""
    seen: Counter[tuple[tuple[str, str], ...]] = Counter()
    over = threading.Event()

    def watch() -> None:
        own = threading.get_ident()
        while not over.wait(EVERY_S):
            for thread, frame in sys._current_frames().items():
                stack = stack_of(frame)
                if thread != own and stack[-1][1] not in WAITING and stack[-1] != DRIVER:
                    seen[tuple(stack)] += 1

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        call()
    except SystemExit:
        pass
    finally:
        over.set()
        watcher.join()
    return seen


def bar(stack: tuple[tuple[str, str], ...]) -> str:
    """The innermost function of rumormill, and the library below it."""
    own = [i for i, (module, _) in enumerate(stack) if module.startswith("rumormill")]
    if any(module.startswith("importlib") for module, _ in stack):
        return "imports"
    if not own:
        return stack[-1][0].split(".")[0]
    module, function = stack[own[-1]]
    below = stack[own[-1] + 1][0].split(".")[0] if own[-1] + 1 < len(stack) else ""
    return f"{module.removeprefix('rumormill.')}.{function}" + (f" → {below}" if below else "")


def simulate() -> None:
    import rumormill as rm

    bandit = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in (0.1, 0.5, 0.9)])
    rm.simulate(bandit, rm.Network.erdos_renyi(100, 0.3, rng=1), "kmp", horizon=1000, trials=10, rng=1)


def command(*words: str) -> None:
    from rumormill.cli import main

    main(list(words))


def run() -> None:
    sys.path.insert(0, str(HERE.parent.parent))
    from scripts.bench_waits import SMALL

    Path("small.toml").write_text(SMALL)
    command("run", "small.toml", "--out", "run")


def advise() -> None:
    chance = random.Random(1)
    with Path("log.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", "agent", "arm", "reward"])
        for i in range(4_000):
            arm = chance.randrange(4)
            table.writerow([i, f"n{i % 10}", f"a{arm}", round(chance.gauss(arm / 4, 1), 4)])
    command("advise", "log.csv", "--maximise")


COMMANDS: dict[str, Callable[[], None]] = {
    "simulate": simulate,
    "run": run,
    "reproduce": lambda: command("reproduce", "fig1a", "--quick", "--out", "fig1a"),
    "advise": advise,
}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        seen = sampled(COMMANDS[sys.argv[2]])
        folded = [";".join(f"{m}:{f}" for m, f in stack) + f" {n}" for stack, n in seen.items()]
        Path(sys.argv[3]).write_text("\n".join(folded))
        bars: Counter[str] = Counter()
        for stack, number in seen.items():
            bars[bar(stack)] += number
        shares = ", ".join(f"{name} {n / seen.total():.0%}" for name, n in bars.most_common(6))
        print(f"{sys.argv[2]} ({seen.total() * EVERY_S:.1f} s): {shares}", file=sys.stderr)
        return
    for name in sys.argv[1:] or COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, str(HERE), "--one", name, str(Path.cwd() / f"{name}.folded")]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
        print(done.stderr.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
