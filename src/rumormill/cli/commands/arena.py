"""`rumormill arena`: policies scored on a fixed suite of games, beside all stored entries."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.arguments import Executor, ExecutorName, Jobs, Json, Trials, part_of_spec, split
from rumormill.cli.printing import note, print_json, print_table, say
from rumormill.errors import InputError
from rumormill.text import nearest, number, plural

if TYPE_CHECKING:
    from rumormill.arena.entries import Entry, EntryStore
    from rumormill.arena.suite import Suite


class SeedsName(StrEnum):
    """What the numbers are for."""

    tuning = "tuning"
    published = "published"


def arena(
    policy: Annotated[
        list[str] | None,
        typer.Argument(
            help='Own policies: my_module:Policy, "my_module:Policy rate=0.1", "kmp zeta=0.5"; repeatable.',
            show_default=False,
        ),
    ] = None,
    suite: Annotated[str, typer.Option(help="arena-1, or a suite of your own as a TOML file.")] = "arena-1",
    quick: Annotated[
        bool, typer.Option("--quick", help="Small games, a few cells; minutes (default).")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="The size of the published table; hours.")] = False,
    seeds: Annotated[
        SeedsName,
        typer.Option(help="tuning: to choose constants; published: to report. They share no chance."),
    ] = SeedsName.published,
    entries: Annotated[
        list[str] | None,
        typer.Option(
            help='Play these of the leaderboard only, or "all"; by default those that are compiled.',
            show_default=False,
        ),
    ] = None,
    cells: Annotated[
        list[str] | None,
        typer.Option(
            help="Cells as patterns: er/*/perfect; by default those of the scale.", show_default=False
        ),
    ] = None,
    trials: Trials = None,
    jobs: Jobs = None,
    executor: Executor = ExecutorName.threads,
    out: Annotated[Path, typer.Option(help="Where entries, arena.json and arena.html are kept.")] = Path(
        "runs/arena"
    ),
    page: Annotated[bool, typer.Option(help="Write the page.")] = True,
    json: Json = False,
) -> None:
    """Score policies on a fixed suite of games.

    Only what is not stored yet is played; Ctrl-C keeps what is done, and the same command goes on.
    """
    from rumormill.arena.entries import EntryStore, shipped_folder
    from rumormill.arena.play import play_suite
    from rumormill.arena.score import as_plain, by_reason, leaderboard
    from rumormill.arena.suite import read_suite
    from rumormill.experiments.run.executors import executor_of

    if quick and full:
        raise InputError("--quick and --full were both given: choose one")
    ready = read_suite(suite, "full" if full else "quick", seeds.value, tuple(cells or ()), trials)
    for line in [*(f"left out: {each}" for each in by_reason(ready.left_out)), *ready.notes]:
        note(line)
    folder = out / f"{ready.name}-{ready.scale}-{ready.seeds}"
    store = EntryStore(folder, shipped_folder(ready), note)
    chosen = _entries(ready, store, policy or [], entries)
    play_suite(ready, chosen, store, executor_of(executor.value, jobs), _progress())
    known = {each.label for each in chosen}
    stored = [] if entries else store.others(known)
    plain = as_plain(leaderboard(ready, [*chosen, *stored]))
    written = _write(plain, store.folder, page)
    if json:
        print_json(plain)
        return
    _print(plain)
    for path in written:
        note(f"written: {path}")


def _entries(suite: Suite, store: EntryStore, own: list[str], wanted: list[str] | None) -> list[Entry]:
    """The entries to play: own policies, those of the suite, and those of the leaderboard."""
    from rumormill.arena.suite import entry_of, shipped_entries

    table = {**shipped_entries(), **suite.entries}
    if wanted == ["all"]:
        wanted = list(table)
    for name in wanted or ():
        if name not in table:
            raise InputError(f"--entries {name!r} is not allowed{nearest(name, ['all', *table])}")
    specs = [entry_of(name, table[name], suite.folder) for name in (wanted or table)]
    for text in own:
        settings = part_of_spec(split(text), "type")
        named = settings if "label" in settings else {**settings, "label": text}
        specs.append(entry_of("", named, None))
    labels = [label for spec in specs for label in spec.labels]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"two entries are called {label!r}: give one of them another label=…")
    found = [store.open(spec) for spec in specs]
    asked = {*(wanted or ()), *suite.entries, *labels[len(specs) - len(own) :]}
    kept = [entry for entry in found if entry.label in asked or _worth_playing(entry, suite)]
    slow = [entry.label for entry in found if entry not in kept]
    if slow:
        note(
            f"not played, since on the reference engine: {', '.join(slow)}; --entries NAME or all plays them"
        )
    return kept


def _worth_playing(entry: Entry, suite: Suite) -> bool:
    """Whether an entry of the leaderboard is stored already, or compiled; others have to be named."""
    from rumormill.arena.play import refusal

    if not any(entry.missing(cell, suite.trials) for cell in suite.cells):
        return True
    return any(not refusal(cell, entry) for cell in suite.cells) and entry.engine == "fast"


def _progress() -> Any:
    """A counter on standard error, where there is a terminal."""
    if not sys.stderr.isatty():
        return lambda done, total: None

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{done:,} of {total:,} trials", end=end, file=sys.stderr, flush=True)

    return show


def _write(plain: dict[str, Any], folder: Path, page: bool) -> list[Path]:
    import json

    from rumormill.arena.score import page_html
    from rumormill.files import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    texts = {"arena.json": json.dumps(plain, indent=1, ensure_ascii=False) + "\n"}
    if page:
        texts["arena.html"] = page_html(plain, shlex.join(["rumormill", *sys.argv[1:]]))
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    return [folder / name for name in texts]


def _print(plain: dict[str, Any]) -> None:
    from rumormill.arena.score import by_reason

    rows = [_row(each, plain["leader"]) for each in plain["entries"]]
    print_table(
        rows,
        title=f"{plain['suite']} ({plain['scale']}, {plain['seeds']} seeds): regret ÷ floor, "
        f"{plural(len(plain['cells']), 'cell')}, {plural(plain['trials'], 'trial')} each",
    )
    for each in plain["entries"]:
        for line in by_reason(each["not_played"]):
            say(f"{each['entry']}: not played in {line}")
    say(f"sha256 of its trials: {plain['sha256']}")


def _row(each: dict[str, Any], leader: str) -> dict[str, Any]:
    low, high = each["against_leader_low"], each["against_leader_high"]
    against = "leader" if each["entry"] == leader else "no interval"
    if low is not None and high is not None:
        decided = "" if low > 1 or high < 1 else " (not decided)"
        against = f"{number(low)} – {number(high)}{decided}"
    return {
        "entry": each["entry"],
        "score": each["score"],
        "common": each["score_common"],
        "× leader, 95 %": against,
        "lost": f"{each['lost']} of {each['trials']}",
        "good": f"{each['good']} of {each['cells']}",
        "worst cell": f"{number(each['worst_ratio'])} {each['worst_cell']}",
        "messages/round": each["messages_per_round"],
        "bytes/round": each["bytes_per_round"],
    }
