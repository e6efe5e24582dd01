"""Where the time of the paper's six panels goes: by panel, by policy and by phase.

    python scripts/paper_times.py [NAME ...]

Plays the second trial of every point of the full panels, one policy after the other, and multiplies by the
number of trials. Processor seconds of one thread, compiled code warm; rewards are drawn once for all policies
of a trial, and what a sweep leaves as it is is played once, as in a run.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

from rumormill.arms.bandit import DRAW_ROUNDS
from rumormill.engine.trial import play_trial
from rumormill.experiments.plan import plan_of
from rumormill.experiments.run.cache import NETWORK_CACHE, contenders, one_blas_thread
from rumormill.experiments.spec.reading import at_scale, named_spec
from rumormill.experiments.spec.schema import Spec
from rumormill.seeds import Role, stream_seed

PANELS = [f"fig1{letter}" for letter in "abcdef"]
PREPARING, DRAWING = "preparing", "drawing"


def panel_times(spec: Spec) -> dict[str, float]:
    """Seconds of all trials, by policy without its draws, and of the draws and the preparation."""
    spent: defaultdict[str, float] = defaultdict(float)
    played = set()
    plan = plan_of(spec)
    marks = plan.checkpoints
    for point in plan.points:
        here = point.spec
        contenders(point, 0)  # libraries are loaded
        started = time.thread_time()
        prepared, bandit, seed = NETWORK_CACHE.at(point, 1), point.bandit(1), point.seed(1)
        n_agents = prepared.network.n_agents
        spent[PREPARING] += time.thread_time() - started
        stream = bandit.stream(stream_seed(seed, Role.REWARDS), n_agents, here.size.horizon)
        stream.block(0, DRAW_ROUNDS)  # compiled code is loaded
        started = time.thread_time()
        for first in range(0, here.size.horizon, DRAW_ROUNDS):
            stream.block(first, min(first + DRAW_ROUNDS, here.size.horizon))
        draw_s = time.thread_time() - started
        fresh = False
        for part, label in zip(here.policies, here.labels, strict=True):
            game = point.game(part)
            if game in played:
                continue
            played.add(game)
            fresh = True
            started = time.thread_time()
            contender = prepared.contender(point, part)
            ready = time.thread_time()
            play_trial([contender], bandit, 20, seed, marks[marks <= 20])  # compiled code is loaded
            warm = time.thread_time()
            play_trial([contender], bandit, here.size.horizon, seed, marks)
            spent[PREPARING] += ready - started
            spent[label] += max(time.thread_time() - warm - draw_s, 0.0)
        spent[DRAWING] += draw_s * fresh
    return {what: seconds * spec.size.trials for what, seconds in spent.items()}


def main() -> None:
    total: defaultdict[str, float] = defaultdict(float)
    panels = {}
    with one_blas_thread():
        for name in sys.argv[1:] or PANELS:
            panels[name] = panel_times(at_scale(named_spec(name), "full"))
            for what, seconds in panels[name].items():
                total[what] += seconds
            print(f"{name}: {sum(panels[name].values()):,.0f} s", file=sys.stderr, flush=True)
    columns = [*panels, "all"]
    print(f"| processor seconds | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    names = sorted(
        (name for name in total if name not in (PREPARING, DRAWING)), key=lambda name: -total[name]
    )
    for name in [*names, DRAWING, PREPARING]:
        cells = [f"{times.get(name, 0.0):,.1f}" for times in (*panels.values(), total)]
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"| all | {' | '.join(f'{sum(times.values()):,.0f}' for times in (*panels.values(), total))} |")


if __name__ == "__main__":
    main()
