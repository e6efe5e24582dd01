"""Other people's bandit simulators on the nearest equal work, in the same run (a part of `make bench`).

Each is installed by pip into a throw-away environment; none is a dependency. What does not install, or does
not start, is said in words. `--sources FOLDER` installs FOLDER/<name> (a checkout) instead of what pip finds.

The work: five arms, rewards with a Gaussian law, one agent that plays UCB by itself, pull after pull, as all
of these libraries offer. None plays agents on a network that tell each other what they saw.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import venv
from pathlib import Path

import rumormill as rm

MEANS = (0.1, 0.3, 0.5, 0.7, 0.9)
PULLS = 5_000

# What is played in the peer's own interpreter: `play(pulls)` takes so many pulls.
PEERS: dict[str, str] = {
    "mabwiser": """
from mabwiser.mab import MAB, LearningPolicy
def play(pulls):
    mab = MAB(list(range(len(MEANS))), LearningPolicy.UCB1(alpha=1.0))
    mab.fit(list(range(len(MEANS))), [MEANS[a] + random.gauss(0, 1) for a in range(len(MEANS))])
    for _ in range(pulls):
        arm = mab.predict()
        mab.partial_fit([arm], [MEANS[arm] + random.gauss(0, 1)])
""",
    "SMPyBandits": """
import scipy.special
if not hasattr(scipy.special, "btdtri"):  # taken out of scipy since; UCB does not use it
    scipy.special.btdtri = scipy.special.betaincinv
from SMPyBandits.Policies import UCB
def play(pulls):
    policy = UCB(len(MEANS))
    policy.startGame()
    for _ in range(pulls):
        arm = policy.choice()
        policy.getReward(arm, MEANS[arm] + random.gauss(0, 1))
""",
    "banditpylib": """
from banditpylib.arms import GaussianArm
from banditpylib.bandits import MultiArmedBandit
from banditpylib.learners.mab_learner import UCB
def play(pulls):
    bandit = MultiArmedBandit([GaussianArm(mu=mean, std=1.0) for mean in MEANS])
    learner = UCB(arm_num=len(MEANS))
    learner.reset()
    for _ in range(pulls):
        learner.update(bandit.feed(learner.actions()))
""",
}

CLOCK = """
import json, random, time
MEANS = {means}
{code}
play(50)
best = float("inf")
for _ in range(3):
    started = time.process_time()
    play({pulls})
    best = min(best, time.process_time() - started)
print(json.dumps(best))
"""


def of_peer(name: str, sources: Path | None) -> float | str:
    """Seconds a pull, or why there are none."""
    given = name if sources is None else str(sources / name)
    if sources is not None and not Path(given).exists():
        return f"no {given}"
    with tempfile.TemporaryDirectory(prefix="rumormill-peers-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", given]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"pip does not install it here: {_last_line(done.stderr)}"
        code = CLOCK.format(means=MEANS, code=PEERS[name], pulls=PULLS)
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"installs, but does not start: {_last_line(done.stderr)}"
        return float(json.loads(done.stdout.splitlines()[-1])) / PULLS


def _last_line(text: str) -> str:
    """What went wrong, in a cell of a table."""
    lines = [each for each in text.strip().splitlines() if each and not each.startswith(("note:", "hint:"))]
    return (lines or ["no word"])[-1].replace("|", "/")


def of_rumormill(network: rm.Network, policy: object, engine: str, horizon: int) -> float:
    """Seconds a pull here, with drawing the rewards."""
    bandit = rm.Bandit([rm.Gaussian(loc=mean) for mean in MEANS])
    best = float("inf")
    for rounds in (50, horizon, horizon, horizon):
        started = time.process_time()
        rm.simulate(bandit, network, policy, horizon=rounds, rng=1, engine=engine, workers=1)  # type: ignore[arg-type]
        best = best if rounds == 50 else min(best, time.process_time() - started)
    return best / horizon / network.n_agents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, help="a folder of checkouts to install instead")
    parser.add_argument("--only", nargs="*", default=list(PEERS), help="only these")
    options = parser.parse_args()
    alone = rm.RobustUCB(estimator=rm.EmpiricalMean())
    pair, hundred = rm.Network.path(2), rm.Network.erdos_renyi(100, 0.3, rng=1)
    own = {
        "rumormill, two agents alone, readable engine": of_rumormill(pair, alone, "reference", 2_000),
        "rumormill, two agents alone, compiled": of_rumormill(pair, alone, "fast", 20_000),
        "rumormill, 100 agents alone, compiled": of_rumormill(hundred, alone, "fast", 20_000),
        "rumormill, 100 agents that tell 30 others, KMP, trimmed mean": of_rumormill(
            hundred, rm.KMPUCB(gamma=1), "fast", 20_000
        ),
    }
    base = own["rumormill, two agents alone, compiled"]
    print("| who | µs a pull | beside two agents here |\n|---|---|---|")
    for name, seconds in own.items():
        print(f"| {name} | {1e6 * seconds:.3g} | {seconds / base:.3g} |", flush=True)
    for name in options.only:
        found = of_peer(name, options.sources)
        if isinstance(found, str):
            print(f"| {name} | not measured: {found} | |", flush=True)
        else:
            print(f"| {name} | {1e6 * found:.3g} | {found / base:.3g} |", flush=True)


if __name__ == "__main__":
    main()
