"""A disk that is an old copy: what was acknowledged on it is never numbered as something that others know."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import rumormill as rm
from live.making import GAME, node_config
from live.processes import cluster, wait_until
from live.test_node import EVERYBODY, commit, exchange, link, pair, play
from rumormill.live.core import frames as wire
from rumormill.live.core.decisions import NotReady
from rumormill.live.core.frames import Have, Obs, Skip
from rumormill.live.core.node import Node
from rumormill.live.core.records import Own, RemovedGame, Renewed, Reserve
from rumormill.live.core.signatures import FORGED
from rumormill.live.io.client import NodeError
from rumormill.live.io.folder import pack, unpack
from rumormill.mesh.file import Limits

PAIR = rm.Network.complete(2)


def restarted(copy: bytes, **given: Any) -> Node:
    """A node on a copy of its disk, not linked yet; it has accepted two rewards since its start."""
    node = Node(node_config(EVERYBODY, PAIR, 0, **given))
    node.restart(unpack(copy), [])
    node.tick(100.0)
    node.start()
    commit(node)
    play(node, 2)
    commit(node)
    return node


def old_and_new(items: int, **given: Any) -> tuple[bytes, Node]:
    """A copy of a disk with two items, and the neighbour, which knows `items`."""
    one, two = nodes = pair(**given)
    for item in range(items):
        if item == 2:
            copy = pack(one.snapshot())
        play(one, 1)
        commit(one)
        exchange(nodes)
    copy = pack(one.snapshot()) if items == 2 else copy
    two.link_down(1)
    two.tick(100.0)
    return copy, two


def relink(one: Node, two: Node, name: int) -> None:
    """As drivers do when a node closes its links."""
    for node in (one, two):
        node.link_down(name)
    link([one, two], name + 1)
    one.tick(one.now + 1.0)
    commit(one)
    exchange([one, two], name + 1)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("retain", [100, 2])
def test_held_rewards_become_the_first_items_of_a_new_epoch(signed: bool, retain: int) -> None:
    limits = Limits(retain=retain, batch=2, skip_after=0.5)
    copy, two = old_and_new(7, signed=signed, limits=limits)
    one = restarted(copy, signed=signed, limits=limits)
    game = one.games[GAME]
    assert (game.own.upto, game.published) == (4, 2)
    link([one, two], 2)
    assert one.config.epoch > 1
    assert game.own.key == (0, one.config.epoch)
    commit(one)
    relink(one, two, 2)
    assert two.games[GAME].streams[(0, 1)].upto == 7
    new = two.games[GAME].streams[game.own.key]
    assert new.retained.between(1, 2) == game.own.retained.between(1, 2)
    assert sum(two.games[GAME].adapter.samples) == 7 + 2
    if retain == 100:  # and the node gets back what its disk had lost
        assert game.streams[(0, 1)].upto == 7
        assert sum(game.adapter.samples) == 7 + 2
    play(one, 1)
    commit(one)
    exchange([one, two], 3)
    assert sum(two.games[GAME].adapter.samples) == 10
    assert not one.violations


def test_a_signed_stream_of_which_nothing_is_on_disk_moves_whole() -> None:
    """Another game of the node shows that the disk is an old copy, before the first commit of this one."""
    one, _ = pair(signed=True)
    play(one, 2)
    one._draw_epoch()
    own = one.games[GAME].own
    assert own.key == (0, one.config.epoch) != (0, 1)
    assert own.upto == 2
    assert list(one.games[GAME].streams) == [own.key]


def test_items_begin_anew_after_a_renewal_of_an_earlier_game() -> None:
    node = Node(node_config(EVERYBODY, PAIR, 0))
    of_another: list[Any] = [Reserve(GAME, 64, "another game"), Own(GAME, 1, 0, 1.0, 1), Renewed(GAME, 7, 1)]
    node.restart(None, of_another)
    own = node.games[GAME].own
    assert (own.key, own.upto) == ((0, 7), 0)


def test_a_removed_game_begins_its_items_anew_in_a_new_epoch() -> None:
    copy, two = old_and_new(7)
    one = restarted(copy)
    one._removed["gone"] = RemovedGame(t=50, seq=9)
    link([one, two], 2)
    assert one.config.epoch > 1
    assert one._removed["gone"].numbers == (50, 0, b"")  # its decisions keep their numbers
    assert Renewed("gone", one.config.epoch, 9) in one.take_journal()


def test_held_rewards_wait_until_a_neighbour_has_answered() -> None:
    """However long: nobody has said yet whether more of the stream is known."""
    copy, _ = old_and_new(7)
    one = restarted(copy)
    for second in range(200):
        one.tick(100.0 + second)
        commit(one)
    assert one.games[GAME].published == 2
    assert one.games[GAME].held is not None


def test_the_new_epoch_survives_a_restart() -> None:
    copy, two = old_and_new(7)
    one = restarted(copy)
    link([one, two], 2)
    again = Node(node_config(EVERYBODY, PAIR, 0))
    again.restart(unpack(copy), one.take_journal())
    # The records before were taken by `restarted`: a snapshot holds all of them.
    whole = Node(node_config(EVERYBODY, PAIR, 0, epoch=one.config.epoch))
    whole.restart(unpack(pack(one.snapshot())), [])
    assert again.config.epoch == whole.config.epoch == one.config.epoch
    assert whole.games[GAME].own.upto == 2
    assert whole.games[GAME].streams[(0, 1)].upto == 2


@pytest.mark.parametrize("signed", [False, True])
def test_a_copy_made_while_items_were_held(signed: bool) -> None:
    """They were sent later: in the new epoch they would count twice."""
    copy, two = old_and_new(2, signed=signed)
    one = restarted(copy, signed=signed)
    copy = pack(one.snapshot())  # two items are held
    link([one, two], 2)
    one.tick(100.5)
    commit(one)
    play(one, 3)
    commit(one)
    exchange([one, two], 2)
    assert sum(two.games[GAME].adapter.samples) == 7
    two.link_down(2)
    again = Node(node_config(EVERYBODY, PAIR, 0, signed=signed))
    again.restart(unpack(copy), [])
    again.tick(200.0)
    again.start()
    commit(again)
    play(again, 1)
    commit(again)
    link([again, two], 3)
    commit(again)
    relink(again, two, 3)
    assert again.games[GAME].own.upto == 1
    assert sum(two.games[GAME].adapter.samples) == 8
    assert sum(again.games[GAME].adapter.samples) == 8


def test_the_newest_disk_goes_on_with_its_epoch() -> None:
    copy, two = old_and_new(2)
    one = restarted(copy)
    link([one, two], 2)
    one.tick(100.5)
    assert one.games[GAME].published == 2  # until it is on disk that this is the newest
    commit(one)
    exchange([one, two], 2)
    assert one.config.epoch == 1
    assert sum(two.games[GAME].adapter.samples) == 4


def test_who_claims_more_and_shows_nothing_is_waited_for() -> None:
    copy, two = old_and_new(2)
    one = restarted(copy)
    link([one, two], 2)
    for frame in (Have(GAME, [(0, 1, 99, 1)], full=False), Skip(GAME, 0, 1, 99)):
        one.receive(2, wire.encode(frame)[4:])
    for second in range(40):
        one.tick(101.0 + second)
        commit(one)
    assert one.games[GAME].published == 2
    one.tick(160.0)
    commit(one)
    assert (one.games[GAME].published, one.config.epoch) == (4, 1)


def test_a_skip_up_to_what_is_known_means_nothing() -> None:
    """It was sent before the last items arrived; one beyond them claims what nobody wrote."""
    copy, two = old_and_new(2)
    one = restarted(copy)
    link([one, two], 2)
    for upto in (1, 2):
        one.receive(2, wire.encode(Skip(GAME, 0, 1, upto))[4:])
    said = [wire.decode(frame[4:]) for frame in one.frames(2, 1 << 30)]
    assert not any(isinstance(frame, Have) and not frame.full for frame in said), "nothing to ask for"
    one.tick(100.5)
    commit(one)
    exchange([one, two], 2)
    assert one.games[GAME].held is None
    for upto, violations in ((4, 0), (5, 1)):
        one.receive(2, wire.encode(Skip(GAME, 0, 1, upto))[4:])
        assert one.violations["skip"] == violations


def test_in_a_signed_mesh_only_the_own_signature_shows_it() -> None:
    copy, two = old_and_new(2, signed=True)
    one = restarted(copy, signed=True)
    link([one, two], 2)
    for frame in (
        Have(GAME, [(0, 1, 3, 1)], full=False),
        Obs(GAME, 0, 1, 1, 3, [(9, 0, 1.0)], None, b"mine"),
        Skip(GAME, 0, 1, 3, bytes(32), None, b"mine"),
    ):
        one.receive(2, wire.encode(frame)[4:])
    assert one.violations[FORGED] == 2
    assert one.config.epoch == 1


def test_a_node_that_may_draw_no_further_epoch_acknowledges_nothing() -> None:
    limits = Limits(epochs=1)
    copy, two = old_and_new(7, limits=limits)
    one = restarted(copy, limits=limits)
    token = one.choose(GAME, 100.0, 60.0)
    link([one, two], 2)
    assert not one.ready
    with pytest.raises(NotReady, match="give it a new name"):
        one.observe(GAME, token.t, token.arm, 1.0)
    with pytest.raises(NotReady, match="give it a new name"):
        one.choose(GAME, 100.0, 60.0)


@pytest.mark.parametrize("signed", [False, True])
def test_a_folder_from_a_backup(tmp_path: Path, signed: bool) -> None:
    """The whole way, with processes: every acknowledged reward arrives at the neighbour, none twice."""
    with cluster(tmp_path, [(0, 1)], signed=signed) as made:
        for v in (0, 1):
            made.start(v)

        def reward(n: int) -> None:
            with made.client(0) as client:
                while n:
                    try:
                        client.observe(client.choose(GAME), float(n))
                        n -= 1
                    except NodeError as error:  # the epoch changed between the two
                        if error.status != 410:
                            raise

        reward(5)
        assert made.kill(0, signal.SIGTERM) == 0
        shutil.copytree(made.data(0), tmp_path / "backup")
        made.start(0)
        reward(6)
        wait_until(lambda: made.samples(1) == 11)
        epoch = made.status(0)["epoch"]
        made.kill(0)
        shutil.rmtree(made.data(0))
        shutil.copytree(tmp_path / "backup", made.data(0))
        made.start(0)
        reward(3)
        wait_until(lambda: made.samples(1) == 14 and made.samples(0) == 14)
        assert made.status(0)["epoch"] > epoch
        assert any("old copy" in line["text"] for line in made.log(0))
        reward(2)
        wait_until(lambda: made.samples(1) == 16)
