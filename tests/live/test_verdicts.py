"""Verdicts of running games: what is proven and what is not, after a restart, over HTTP; how often false."""

from __future__ import annotations

import json
import math
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import rumormill as rm
from live.making import GAME, node_config
from live.processes import cluster
from live.test_node import EVERYBODY, commit, exchange, pair
from rumormill.cli import main
from rumormill.live.core.node import Node
from rumormill.live.core.verdicts import BATCH, Proof, Verdicts, proven_best
from rumormill.live.io.client import verdict_text
from rumormill.live.io.folder import pack, unpack

MOMENTS = rm.Moments(eps=1.0, u=2.0, rho=1.0)


def test_best_is_proven_only_by_intervals_that_do_not_touch() -> None:
    assert proven_best([(0.0, 1.0), (1.5, 2.0), (-math.inf, 1.25)]) == (1, 0.25)
    assert proven_best([(0.0, 1.0), (1.0, 2.0)]) is None
    assert proven_best([(0.0, math.inf), (1.0, 2.0)]) is None
    assert proven_best([(-math.inf, math.inf)] * 2) is None
    assert proven_best([(0.0, 1.0)]) is None


def test_a_clear_best_arm_is_proven_with_its_margin() -> None:
    verdicts, rng = Verdicts(3, MOMENTS), np.random.default_rng(1)
    assert verdicts.proof() is None
    for _ in range(300):
        for arm, mean in enumerate((0.0, 2.0, 1.0)):
            verdicts.add(arm, float(rng.normal(mean, 1.0)))
    proof = verdicts.proof(now=50.0)
    assert proof is not None
    assert (proof.arm, proof.samples, proof.at) == (1, 900, 50.0)
    assert 0.0 < proof.margin < 1.0
    verdicts.add(0, 0.0)
    again = Verdicts(3, MOMENTS)
    again.restore(verdicts.state())
    margin = again.intervals[1][0] - max(again.intervals[0][1], again.intervals[2][1])
    for each in (verdicts, again):
        assert each.proof(now=60.0) == Proof(1, margin, 900, 50.0), "when it was first seen"
    again.restore({**verdicts.state(), "proven": [1, 900]})  # a snapshot without the time
    assert again.proof(now=60.0) == Proof(1, margin, 900, 0.0)


def test_without_moments_nothing_is_proven() -> None:
    verdicts = Verdicts(2, None)
    verdicts.add(0, 1.0)
    assert (verdicts.proof(), verdicts.intervals, verdicts.refuted) == (None, [], [])


def test_samples_that_contradict_the_moments_end_all_verdicts() -> None:
    verdicts = Verdicts(2, rm.Moments(eps=1.0, u=1.0, rho=1e-4))
    for value in [0.0] * 600 + [1.0] * 6_000:
        verdicts.add(0, value)
        verdicts.add(1, 0.5)
    assert verdicts.intervals[0][0] >= verdicts.intervals[0][1]
    assert (verdicts.refuted, verdicts.proof()) == ([0], None)


def test_nodes_pool_their_samples_and_keep_them_over_a_restart() -> None:
    nodes = pair(verdicts=True)
    for n in range(3 * BATCH):  # rewards of one arm come in batches and alone
        node = nodes[n % 2]
        token = node.choose(GAME, node.now, 60.0)
        node.observe(GAME, token.t, token.arm, float(token.arm), weight=1 + n % 3)
        commit(node)
        exchange(nodes)
    one, two = (node.games[GAME].verdicts for node in nodes)
    counts = [sum(sequence.count for sequence in each._sequences) for each in (one, two)]
    waiting = [sum(map(len, each._waiting)) for each in (one, two)]
    # Every reward once at both nodes, whatever its weight.
    assert [a + b for a, b in zip(counts, waiting, strict=True)] == [3 * BATCH] * 2
    state = unpack(pack(nodes[0].snapshot()))
    again = Node(node_config(EVERYBODY, rm.Network.complete(2), 0, verdicts=True))
    again.restart(state, [])
    assert again.games[GAME].verdicts.state() == one.state()
    assert again.games[GAME].verdicts.intervals == one.intervals


def test_other_moments_begin_anew() -> None:
    old, new = Verdicts(2, MOMENTS), Verdicts(2, rm.Moments(eps=1.0, u=2.0, rho=2.0))
    for _ in range(200):
        old.add(0, 1.0)
    assert math.isfinite(old.intervals[0][0])
    new.restore(old.state())
    new.restore(None)
    assert new.intervals == [(-math.inf, math.inf)] * 2


def test_verdict_over_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Costs of 10, 400 and 400 ms: the sign of the objective, the intervals, the exit code."""
    begun = time.time()
    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(0)
        url = f"http://127.0.0.1:{made.http[0]}"

        def verdict(*more: str) -> tuple[int, str]:
            with pytest.raises(SystemExit) as ended:
                main(["mesh", "verdict", url, *more])
            return int(ended.value.code or 0), capsys.readouterr().out

        code, said = verdict()
        assert (code, said.splitlines()[0]) == (
            3,
            f"no arm of {GAME} is proven best yet (95 % at any time)",
        )
        with made.client(0) as client:
            for _ in range(12):
                choices = [client.choose(GAME) for _ in range(15)]
                client.observe_many((each, 10.0 if each.arm == "ams" else 400.0) for each in choices)
        code, said = verdict("--json", "--stop-when", "proven")
        found = json.loads(said)
        assert (code, found["best"], found["unit"]) == (0, "ams", "ms")
        arms = {row["arm"]: row for row in found["arms"]}
        assert (
            arms["ams"]["low"] < 10.0 < arms["ams"]["high"] < arms["fra"]["low"] < 400.0 < arms["fra"]["high"]
        )
        assert found["margin"] == pytest.approx(
            min(arms["fra"]["low"], arms["waw"]["low"]) - arms["ams"]["high"]
        )
        assert begun - 1.0 <= found["proven_at"] <= time.time() + 1.0
        assert "ams is better than every other arm by at least" in verdict_text(found)
        day = datetime.fromtimestamp(found["proven_at"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC)")
        assert verdict_text(found).endswith(day)
        assert verdict_text({**found, "proven_at": None}).endswith(" samples)")
        with made.client(0) as client:
            metrics = client._exchange("GET", "/metrics", None)[1].decode()
        assert f'rumormill_proven_best{{game="{GAME}",arm="ams"}} 1\n' in metrics
        assert f'rumormill_proven_best{{game="{GAME}",arm="fra"}} 0\n' in metrics
        with pytest.raises(SystemExit):
            main(["mesh", "verdict", url, "--stop-when", "sometimes"])
        assert "--stop-when sometimes is not allowed: proven" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main(["mesh", "verdict", url, "--game", "mirors"])
        assert "mirrors" in capsys.readouterr().err


@pytest.mark.slow
def test_false_verdicts_are_rare_however_often_one_looks() -> None:
    """10,000 meshes of two equal arms and one worse, chosen adaptively, looked at after every choice.

    Any proof is false. At most 5 %: P(Bin(10000, .05) > 615) < 2e-7.
    """
    false = 0
    for seed in range(10_000):
        rng = np.random.default_rng((11, seed))
        verdicts = Verdicts(3, rm.Moments(eps=0.5, u=9.0, rho=1.7))  # Student 2.1: E|X|^1.5 is about 1.63
        sums, counts = np.zeros(3), np.zeros(3)
        for t in range(240):
            # Greedy with exploration: the arm that looks best is sampled more.
            means = sums / np.maximum(counts, 1.0)
            arm = t % 3 if rng.random() < 0.3 or counts.min() == 0 else int(means.argmax())
            x = float(rng.standard_t(2.1) - (arm == 2))
            verdicts.add(arm, x)
            sums[arm], counts[arm] = sums[arm] + x, counts[arm] + 1
            if verdicts.proof() is not None:
                false += 1
                break
    assert false <= 615
