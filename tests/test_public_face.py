"""What a user meets: an own policy, an own channel, Ctrl-C, quick import."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import Any, ClassVar

import numpy as np
import pytest

import rumormill as rm
from helpers.channels import Deaf
from helpers.oracle_adapters import COMPILED_POLICIES
from helpers.small_games import IN_PARTS, NETWORK, EpsilonGreedy, simulate
from rumormill.errors import SlowEngineNotice


def test_an_own_policy_runs() -> None:
    result = simulate(policy=EpsilonGreedy, engine="reference", trials=3, actions=True, horizon=60)
    assert result.engine == "reference"
    assert result.actions is not None
    assert result.actions.shape == (3, 60, 4)
    assert (result.actions[:, :3] == np.arange(3)[:, None]).all()
    assert set(np.unique(result.actions)) == {0, 1, 2}
    assert result.messages[0, -1] == 60 * 6  # one each round over both ends of three links
    again = simulate(policy=EpsilonGreedy, engine="reference", trials=3, actions=True, horizon=60)
    np.testing.assert_array_equal(result.actions, again.actions)
    other = simulate(policy=EpsilonGreedy, engine="reference", trials=3, actions=True, horizon=60, rng=1)
    assert other.actions is not None
    assert not np.array_equal(result.actions, other.actions)


def test_agents_and_trials_have_generators_of_their_own() -> None:
    class Coin(EpsilonGreedy):
        def choose(self, t: int) -> int:
            return int(self.rng.integers(self.n_arms))

    actions = simulate(policy=Coin, engine="reference", trials=3, actions=True, horizon=60).actions
    assert actions is not None
    streams = {tuple(actions[trial, :, v]) for trial in range(3) for v in range(4)}
    assert len(streams) == 12


def test_auto_says_that_an_own_policy_is_slow() -> None:
    says = "^EpsilonGreedy runs on the reference engine: .*built-in"
    with pytest.warns(SlowEngineNotice, match=says) as seen:
        result = simulate(policy=EpsilonGreedy)
    assert result.engine == "reference"
    assert len(seen) == 1


def test_auto_says_that_a_channel_is_slow_and_changes_nothing() -> None:
    class Own(rm.PerfectChannel):
        pass

    with pytest.warns(SlowEngineNotice, match="does not support the channel Own"):
        slow = simulate(channel=Own(), actions=True, policy=rm.KMPUCB(gamma=2))
    np.testing.assert_array_equal(slow.actions, simulate(actions=True, policy=rm.KMPUCB(gamma=2)).actions)


class Noting(rm.PerfectChannel):
    """Keeps what it was opened with."""

    opened: ClassVar[list[tuple[rm.Network, np.random.SeedSequence]]] = []

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> Any:
        self.opened.append((network, seed))
        return super().open(network, seed)


def test_a_channel_is_opened_for_every_trial_with_its_seed_and_the_network() -> None:
    Noting.opened.clear()
    simulate(channel=Noting(), engine="reference", policy=rm.KMPUCB(gamma=1), trials=2)
    assert [network for network, _ in Noting.opened] == [NETWORK, NETWORK]
    assert [(seed.entropy, seed.spawn_key) for _, seed in Noting.opened] == [(0, (0, 4)), (0, (1, 4))]


def test_the_perfect_channel_is_fast_by_name_and_as_an_instance() -> None:
    plain = simulate(actions=True, policy=rm.KMPUCB(gamma=2))
    for channel in ("perfect", {"type": "perfect"}, rm.PerfectChannel()):
        given = simulate(channel=channel, actions=True, policy=rm.KMPUCB(gamma=2))
        assert given.engine == "fast"
        np.testing.assert_array_equal(given.actions, plain.actions)


def test_a_channel_that_drops_everything_is_isolation() -> None:
    talking = rm.DecentralizedMPUCB(gamma=2, clique_filter=False)
    silent = simulate(channel=Deaf(), engine="reference", actions=True, policy=talking)
    np.testing.assert_array_equal(silent.actions, simulate(actions=True).actions)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"policy": EpsilonGreedy}, "built-in policies only"),
        ({"channel": Deaf()}, "does not support the channel Deaf"),
        ({"policy": rm.RobustUCB(estimator=rm.TrimmedMean(variant="literal"))}, "literal"),
    ],
    ids=["own policy", "channel", "literal"],
)
def test_fast_says_why_it_cannot(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(rm.InputError, match=f'^engine="fast" cannot run this: .*{reason}'):
        simulate(engine="fast", **options)


def test_built_in_policies_are_fast_by_default() -> None:
    assert {simulate(policy=name).engine for name in COMPILED_POLICIES} == {"fast"}
    assert {"decentralized", "centralized", "kmp", "consensus", "robust"} <= set(COMPILED_POLICIES)


def test_numpy_numbers_are_numbers() -> None:
    anything: Any = rm.KMPUCB
    policy = anything(gamma=np.int64(1), c=np.int64(1))
    plain = rm.KMPUCB(gamma=1, c=1.0)
    np.testing.assert_array_equal(
        simulate(policy=policy, actions=True, horizon=np.int64(20)).actions,
        simulate(policy=plain, actions=True).actions,
    )


def test_a_network_in_parts_says_so() -> None:
    text = IN_PARTS.describe()
    assert "2 parts" in text
    assert not IN_PARTS.connected
    assert simulate(network=IN_PARTS, policy=rm.KMPUCB(gamma=1)).regret.shape == (1, 20)


def test_every_error_is_a_rumormill_error() -> None:
    for error in (rm.InputError, rm.DataError, rm.ContractError, rm.SolverError):
        assert issubclass(error, rm.RumormillError)
    assert issubclass(rm.InputError, ValueError)


def run_python(text: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


def test_import_is_light() -> None:
    heavy = {"numba", "scipy", "networkx", "rustworkx", "dimod", "dwave", "matplotlib", "polars"}
    heavy |= {"typer"}
    loaded = run_python("import json, sys, rumormill; print(json.dumps(sorted(sys.modules)))")
    assert not set(json.loads(loaded)) & heavy


def test_public_names_exist() -> None:
    assert len(set(rm.__all__)) == len(rm.__all__)
    for name in rm.__all__:
        assert hasattr(rm, name)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
@pytest.mark.parametrize(("engine", "workers"), [("fast", 1), ("fast", 2), ("reference", 1)])
def test_ctrl_c_ends_a_long_run(engine: str, workers: int) -> None:
    program = f"""
        import signal
        import rumormill as rm

        # Whoever starts the tests in the background may have told its children to ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        bandit = rm.Bandit([rm.AlphaStable(alpha=1.5, loc=loc) for loc in (0.0, 1.0)])
        network = rm.Network.complete(30)
        started = []

        def progress(done, total):
            if not started:
                started.append(True)
                print("started", flush=True)

        try:
            rm.simulate(bandit, network, rm.KMPUCB(gamma=1), horizon=1_000_000, trials=40, rng=0,
                        engine="{engine}", workers={workers}, progress=progress)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "started\n"
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=20)
        finally:
            child.kill()
    assert said == "interrupted\n"
    assert child.returncode == 0
