"""Words on the command line as parts of a spec."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rumormill.cli.arguments import network_part, part_of_spec, split, value_of
from rumormill.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("1_000", 1000),
        ("0.7", 0.7),
        (".7", 0.7),
        ("7.", 7.0),
        ("-.5e-1", -0.05),
        ("1e3", 1000.0),
        ("inf", math.inf),
        ("true", True),
        ("True", True),
        ("false", False),
        ("False", False),
        ("[true, False]", [True, False]),
        ('["True", True]', ["True", True]),
        ("{eps=0.5, u=1, rho=True}", {"eps": 0.5, "u": 1, "rho": True}),
        ("[0.1, 0.9]", [0.1, 0.9]),
        ('"5"', "5"),
        ("half-diameter", "half-diameter"),
        ("Truely", "Truely"),
        ("TRUE", "TRUE"),
        ("1\nother = 2", "1\nother = 2"),
        (".", "."),
        ("data/graph.txt", "data/graph.txt"),
    ],
)
def test_values(text: str, value: Any) -> None:
    read = value_of(text)
    assert read == value
    assert type(read) is type(value)


def test_parts() -> None:
    assert part_of_spec(split("kmp gamma=1 zeta=.5"), "type") == {"type": "kmp", "gamma": 1, "zeta": 0.5}
    own = part_of_spec(split("my_module:Greedy rate=0.1 bold=True"), "type")
    assert own == {"type": "my_module:Greedy", "rate": 0.1, "bold": True}
    assert split("a 'b c'=1") == ["a", "b c=1"]


@pytest.mark.parametrize("words", ["kmp 1", "kmp =1", "kmp gamma=", "kmp gamma=1 gamma=2", ""])
def test_wrong_parts(words: str) -> None:
    with pytest.raises(InputError):
        part_of_spec(split(words), "type")


def test_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").write_text("0 1\n")
    assert network_part(["ring", "n=5"]) == {"kind": "ring", "n": 5}
    assert network_part(["ego-Facebook", "subgraph=9"]) == {
        "kind": "file",
        "file": "ego-Facebook",
        "subgraph": 9,
    }
    for name in ("plain", "nets/mine.txt", "./plain", "mine.txt"):
        assert network_part([name]) == {"kind": "file", "file": name}
    for own in ("my_nets:Wheel", "lab.nets:Wheel"):
        assert network_part([own, "n=4"]) == {"kind": own, "n": 4}
    Path("odd:name.txt").write_text("0 1\n")
    assert network_part(["odd:name.txt"]) == {"kind": "file", "file": "odd:name.txt"}
