"""Journals of version 0.2 replay: the same state to the byte, the same next decisions.

data/journals-0.2.json holds, per policy, what version 0.2 wrote for the middle node of a line of three: its
records and a snapshot taken on the way (base64), the sha256 sum of its packed state at the end, the arms it
chose next.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

import rumormill as rm
from live.making import GAME, node_config
from rumormill.live.core import records
from rumormill.live.core.node import Node
from rumormill.live.io.folder import pack, unpack

WRITTEN: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "journals-0.2.json").read_text())
POLICIES = {
    "decentralized": rm.DecentralizedMPUCB(gamma=2, zeta=0.5, clique_filter=False),
    "kmp signed": rm.KMPUCB(gamma=1, zeta=0.5),
    "centralized": rm.CentralizedMPUCB(gamma=2, zeta=0.5),
}


def middle_node(name: str) -> Node:
    """As version 0.2 had it: the tests' fingerprint is the policy's text, which has more settings now."""
    config = node_config(POLICIES[name], rm.Network.path(3), 1, signed="signed" in name)
    written = unpack(zlib.decompress(b64decode(WRITTEN[name]["snapshot"])))[GAME]["fingerprint"]
    game = dataclasses.replace(config.games[0], fingerprint=written)
    return Node(dataclasses.replace(config, games=(game,)))


def state_of_0_2(node: Node) -> bytes:
    """The packed state without what version 0.2 did not have: the names of the arms."""
    state = node.snapshot()
    del state[GAME]["arms"]
    return pack(state)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_journal_of_0_2_replays(name: str, with_snapshot: bool) -> None:
    written = WRITTEN[name]
    read = [records.decode(b64decode(data)) for data in written["records"]]
    assert [records.decode(records.encode(record)) for record in read] == read
    node = middle_node(name)
    if with_snapshot:
        state = unpack(zlib.decompress(b64decode(written["snapshot"])))
        node.restart(state, read[written["snapshot_after"] :])
    else:
        node.restart(None, read)
    assert node.games[GAME].differing == 0
    if not with_snapshot:
        assert hashlib.sha256(state_of_0_2(node)).hexdigest() == written["state"]
    node.start()
    node.take_journal()
    node.committed(node.records)
    assert [node.choose(GAME, 20.0, 3.0).arm for _ in written["next"]] == written["next"]
