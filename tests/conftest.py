"""Makes `helpers` importable from every folder of tests, and compiles kernels once for all workers."""

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

MANY_TESTS = 2_000  # a selection below this compiles what it needs
# The environment of the router's example has no compiler.
COMPILES = importlib.util.find_spec("numba") is not None and "NUMBA_DISABLE_JIT" not in os.environ
LONGEST_WAIT = 300.0  # seconds; whoever waits in vain compiles for itself


def compile_kernels(number: int, count: int) -> None:
    """Play short games of one share: every kernel is used by one of these policies."""
    import rumormill as rm

    network, two_way = rm.Network.ring(5), rm.Imperfect(p=0.5, symmetric=True)
    games: list[list[Any]] = [
        [rm.DecentralizedMPUCB(), {"channel": two_way}, rm.OriginMedianUCB(), {}],
        [rm.KMPUCB(estimator=rm.MedianOfMeans()), {}],
        [rm.ConsensusUCB(), {}, rm.ConsensusUCB(), {"channel": two_way}, rm.DDUCB(), {}],
        [rm.DecentralizedMPUCB(), {}, rm.CentralizedMPUCB(), {}, rm.KMPUCB(), {"k": 2}],
    ]
    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    for share in games[number::count]:
        for policy, faults in zip(share[::2], share[1::2], strict=True):
            rm.simulate(bandit, network, policy, horizon=5, rng=0, engine="fast", **faults)


@pytest.fixture(scope="session", autouse=True)
def shared_kernels() -> Iterator[None]:
    """Tests use all kinds of means: one kernel for all, compared with others in kernels/test_features.py."""
    if not COMPILES:
        yield
        return
    from rumormill.engine import compiled

    with compiled.shared_kernels():
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_kernels: None
) -> None:
    """With several workers each compiles a share of the kernels; the others load them from the disk cache."""
    worker = getattr(request.config, "workerinput", None)
    if worker is None or request.session.testscollected < MANY_TESTS or not COMPILES:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    if number >= count:  # in place of a worker that crashed
        return
    compile_kernels(number, count)
    shared = tmp_path_factory.getbasetemp().parent
    (shared / f"compiled{number}").touch()
    began = time.monotonic()
    while len(list(shared.glob("compiled*"))) < count and time.monotonic() - began < LONGEST_WAIT:
        time.sleep(0.2)
