"""The laws of the fleet without HTTP: what a setting of the mesh costs, beside the rule of the last ten.

python examples/router/simulate.py --seeds 8 --discount 0.99 0.996

Four gateways, all linked, 360 requests each, a brown-out from 35 to 60 %. Mean excess of the time to the
first token over the best provider of the moment, in ms: in all, before, in and after the brown-out.
"""

from __future__ import annotations

import argparse
import random
import warnings

import numpy as np
from fleet import FLEET, TIMEOUT
from numpy.typing import NDArray

import rumormill as rm

GATEWAYS, REQUESTS, BROWN_OUT = 4, 360, (0.35, 0.60)


def table(seed: int, requests: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds to the first token and their means, by request, gateway and provider."""
    rng = random.Random(seed)
    first, last = (int(share * requests) for share in BROWN_OUT)
    shape = (requests, GATEWAYS, len(FLEET))
    seconds, means = np.empty(shape), np.empty(shape)
    for t, g, k in np.ndindex(*shape):
        brown = first <= t < last
        seconds[t, g, k] = min(FLEET[k].draw(rng, brown), TIMEOUT)
        means[t, g, k] = FLEET[k].mean(brown)
    return seconds, means


def last_ten(seconds: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """LiteLLM's lowest latency: every gateway takes the provider with the least mean of its last ten."""
    rng = random.Random(seed)
    requests, gateways, providers = seconds.shape
    chosen = np.zeros((requests, gateways), np.int64)
    for g in range(gateways):
        seen: list[list[float]] = [[] for _ in range(providers)]
        for t in range(requests):
            means = [sum(each[-10:]) / len(each[-10:]) if each else 0.0 for each in seen]
            arm = rng.choice([k for k in range(providers) if means[k] == min(means)])
            chosen[t, g] = arm
            seen[arm].append(float(seconds[t, g, arm]))
    return chosen


def by_mesh(
    seconds: NDArray[np.float64], means: NDArray[np.float64], seed: int, discount: float, zeta: float
) -> NDArray[np.int64]:
    """The policy of the demonstration."""
    policy = rm.DecentralizedMPUCB(
        gamma=1,
        clique_filter=False,
        zeta=zeta,
        moments=rm.Moments(eps=0.5, u=3.0, rho=3.0),
        forget={"discount": discount},  # type: ignore[arg-type]
    )
    bandit = rm.Replay(seconds, means, objective="minimise")
    network = rm.Network.complete(seconds.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.SlowEngineNotice)
        result = rm.simulate(bandit, network, policy, horizon=len(seconds), rng=seed, actions=True)
    assert result.actions is not None
    return np.asarray(result.actions[0], np.int64)


def excess(chosen: NDArray[np.int64], means: NDArray[np.float64]) -> list[float]:
    """In ms: in all, before, in and after the brown-out."""
    lost = 1000 * (np.take_along_axis(means, chosen[..., None], 2)[..., 0] - means.min(axis=2))
    first, last = (int(share * len(lost)) for share in BROWN_OUT)
    return [float(part.mean()) for part in (lost, lost[:first], lost[first:last], lost[last:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of a gateway")
    parser.add_argument("--discount", type=float, nargs="+", default=[0.99, 0.993, 0.996])
    parser.add_argument("--zeta", type=float, nargs="+", default=[0.03])
    given = parser.parse_args()
    found: dict[str, list[list[float]]] = {}
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        seconds, means = table(seed, given.requests)
        rules = {"lowest of the last ten": last_ten(seconds, seed)}
        rules["random"] = np.random.default_rng(seed).integers(0, len(FLEET), seconds.shape[:2])
        for discount in given.discount:
            for zeta in given.zeta:
                rules[f"discount {discount:g}, zeta {zeta:g}"] = by_mesh(seconds, means, seed, discount, zeta)
        for name, chosen in rules.items():
            found.setdefault(name, []).append(excess(chosen, means))
    print(f"{'rule':<28} {'excess':>7} {'before':>7} {'in it':>7} {'after':>7}")
    for name, rows in sorted(found.items(), key=lambda item: float(np.mean([row[0] for row in item[1]]))):
        print(f"{name:<28} " + " ".join(f"{value:7.0f}" for value in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
