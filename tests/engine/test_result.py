"""A result in the hands of a user: text, HTML, tables, files, rewards, progress."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.small_games import BANDIT, NETWORK, EpsilonGreedy
from rumormill.engine.result import label_of_policy, with_settings
from rumormill.engine.simulate import compilation_announced, progress_line

SIZE: dict[str, Any] = {"horizon": 40, "trials": 3, "rng": 7}
COSTS = rm.Bandit([rm.Gaussian(loc=3.0), rm.Gaussian(loc=5.0)], objective="minimise")
MIXED_LAWS = rm.Bandit([rm.Gaussian(loc=0.0), rm.Pareto(tail=2.5).at_mean(1.0)])


@pytest.fixture(scope="module")
def kmp() -> rm.Result:
    return rm.simulate(BANDIT, NETWORK, rm.KMPUCB(gamma=1), **SIZE)


@pytest.fixture
def no_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    plt.close("all")
    yield
    plt.close("all")


def test_it_is_one_line(kmp: rm.Result) -> None:
    text = repr(kmp)
    assert len(text) < 160
    assert "\n" not in text
    assert text.startswith(f"Result(KMP: 3 trials of 40 rounds, {NETWORK.n_agents} agents; group regret ")
    assert f"{kmp.regret[:, -1].mean():,.0f} (" in text


@pytest.mark.usefixtures("no_figures")
def test_notebooks_get_tables_and_pictures_once(kmp: rm.Result) -> None:
    """Nothing is left with pyplot: an inline backend would show it a second time."""
    import matplotlib.pyplot as plt

    found = rm.compare(BANDIT, NETWORK, ["kmp", "robust"], **SIZE)
    for shown, words in (
        (kmp, ("KMP", "regret")),
        (found, ("robust", "against")),
        (NETWORK, ("diameter", "connected")),
    ):
        html = shown._repr_html_()
        assert "data:image/png;base64," in html
        assert all(word in html for word in words), html[:400]
    assert "Gaussian(loc=5.0" in COSTS._repr_html_()
    assert "not drawn" in rm.Network.complete(100)._repr_html_()
    assert plt.get_fignums() == []
    kmp.plot()
    assert len(plt.get_fignums()) == 1


@pytest.mark.usefixtures("no_figures")
def test_results_of_one_class_are_told_apart_in_one_picture(kmp: rm.Result) -> None:
    axes = kmp.plot()
    rm.simulate(BANDIT, NETWORK, rm.KMPUCB(gamma=2), **SIZE).plot(axes)
    assert [line.get_label() for line in axes.lines] == ["KMP", "KMP (gamma=2)"]
    colours = {line.get_color() for line in axes.lines}
    assert len(colours) == 2


def test_a_frame_is_tidy(kmp: rm.Result) -> None:
    frame = kmp.to_frame()
    assert len(frame) == 3 * 40
    last = frame.filter(frame["t"] == 40)
    assert last["trial"].to_list() == [0, 1, 2]
    np.testing.assert_array_equal(last["regret"].to_numpy(), kmp.regret[:, -1])
    np.testing.assert_array_equal(last["messages"].to_numpy(), kmp.messages[:, -1])
    agents = kmp.to_frame(agents=True)
    chosen = agents.filter((agents["trial"] == 2) & (agents["agent"] == 1))
    np.testing.assert_array_equal(chosen["regret"].to_numpy(), kmp.agent_regret[2, :, 1])


def test_files_keep_every_array(tmp_path: Path) -> None:
    result = rm.simulate(BANDIT, NETWORK, rm.KMPUCB(gamma=2), actions=True, rewards=True, **SIZE)
    again = rm.load_result(result.save(tmp_path / "kmp.npz"))
    for name in (
        "checkpoints",
        "agent_regret",
        "messages",
        "wire_bytes",
        "actions",
        "agent_rounds",
        "rewards",
    ):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    assert (again.policy, again.engine) == ("KMP (gamma=2)", "fast")
    assert again.agent_common_regret is None
    assert repr(again).startswith("Result(KMP (gamma=2): 3 trials")


@pytest.mark.parametrize("content", [None, b"", b"PK", b"header"])
def test_other_files_are_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(rm.DataError, match=r"x\.npz (is no saved result|cannot be read)"):
        rm.load_result(path)


@pytest.mark.parametrize("bandit", [BANDIT, COSTS, MIXED_LAWS], ids=["shared", "costs", "several laws"])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_rewards_are_those_that_agents_observed(bandit: rm.Bandit, engine: Any) -> None:
    seen: list[tuple[int, int, float]] = []

    class Listening(rm.KMPUCB):
        def agent(self, seat: rm.Seat) -> Any:
            made: Any = super().agent(seat)
            observe = made.observe

            def noted(t: int, arm: int, reward: float) -> None:
                seen.append((t, seat.agent, reward))
                observe(t, arm, reward)

            made.observe = noted
            return made

    absent: dict[str, Any] = {"horizon": 70, "rng": 3, "absences": [(1, 5, 9)]}
    result = rm.simulate(bandit, NETWORK, "kmp", engine=engine, rewards=True, **absent)
    assert result.actions is None
    assert result.rewards is not None
    rm.simulate(bandit, NETWORK, Listening(), engine="reference", **absent)
    paid = np.full((70, NETWORK.n_agents), np.nan)
    for t, agent, reward in seen:
        paid[t - 1, agent] = reward if bandit.objective == "maximise" else -reward
    np.testing.assert_array_equal(result.rewards[0], paid)
    assert np.isnan(result.rewards[0, 4:9, 1]).all()


@dataclass
class Settings:
    """A policy of one's own, with settings, that is neither frozen nor derived."""

    rate: float = 0.1

    def agent(self, seat: rm.Seat) -> Any:
        return EpsilonGreedy(seat)


@pytest.mark.parametrize(
    ("policy", "label", "longer"),
    [
        (Settings(), "Settings", "Settings"),
        (Settings(rate=0.3), "Settings", "Settings (rate=0.3)"),
        (partial(Settings, rate=0.3), "Settings", "Settings (rate=0.3)"),
        (EpsilonGreedy, "EpsilonGreedy", "EpsilonGreedy"),
        ("kmp", "KMP", "KMP"),
        (rm.recommended(), "Default", "Default"),
        ({"type": "kmp", "gamma": 2}, "KMP", "KMP (gamma=2)"),
        ({(0, 1): "kmp", ...: "robust"}, "KMP + Robust", "KMP + Robust"),
        ("module:Mine", "Mine", "Mine"),
    ],
)
def test_labels(policy: Any, label: str, longer: str) -> None:
    assert label_of_policy(policy) == label
    assert with_settings(label, policy) == longer


def test_own_instances_with_settings_are_played() -> None:
    policies = [Settings(), Settings(rate=0.3), partial(EpsilonGreedy)]
    found = rm.compare(BANDIT, NETWORK, policies, horizon=10, rng=0, engine="reference")
    assert found.names == ["Settings", "Settings (rate=0.3)", "EpsilonGreedy"]


@pytest.mark.parametrize(
    ("word", "meant"), [("seed", "rng"), ("rounds", "horizon"), ("horizn", "horizon"), ("RNG", "rng")]
)
def test_other_words_for_arguments(word: str, meant: str) -> None:
    options: Any = {"horizon": 5, "rng": 1, word: 3}
    with pytest.raises(rm.InputError, match=f"{word} is unknown: did you mean '{meant}'"):
        rm.simulate(BANDIT, NETWORK, "kmp", **options)


# --- progress and compilation -------------------------------------------------------------------------------


def test_progress_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    rm.simulate(BANDIT, NETWORK, "kmp", progress=True, **SIZE)
    said = capsys.readouterr().err
    assert re.search(r"\r100% of 120 rounds, in \d+ s *\n$", said)
    rm.simulate(BANDIT, NETWORK, "kmp", progress=False, **SIZE)
    assert capsys.readouterr().err == ""


def test_the_line_says_what_is_left() -> None:
    stream, now = io.StringIO(), iter([0.0, 0.1, 10.0, 40.0])
    show = progress_line(stream, lambda: next(now))
    for done in (10, 25, 100):
        show(done, 100)
    assert [line.strip() for line in stream.getvalue().split("\r")] == [
        "",
        "25% of 100 rounds, 30 s left",
        "100% of 100 rounds, in 40 s",
    ]


@pytest.mark.parametrize("notebook", [True, False])
def test_compilation_is_announced_to_people(
    notebook: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rumormill.engine.compiled import COMPILING

    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    with compilation_announced(["KMPUCB", "RobustUCB", "KMPUCB"]):
        for _ in range(2):
            COMPILING.on_start(None)
            COMPILING.on_end(None)
    said = "compiling kernels for KMPUCB, RobustUCB, once on this machine: 8 to 20 s\n"
    assert capsys.readouterr().err == (said if notebook else "")
    assert COMPILING.on_begin is None


def test_plans_are_computed_once_for_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[rm.Network] = []
    plan = rm.KMPUCB.plan

    def counted(self: rm.KMPUCB, network: rm.Network) -> Any:
        made.append(network)
        return plan(self, network)

    monkeypatch.setattr(rm.KMPUCB, "plan", counted)
    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    first, second = rm.Network.ring(5), rm.Network.ring(5)
    for network, gamma in ((first, 1), (first, 1), (first, 2), (second, 1)):
        rm.compare(bandit, network, [rm.KMPUCB(gamma=gamma, zeta=0.5)], horizon=3, rng=1, engine="reference")
    assert made == [first, first, second]
