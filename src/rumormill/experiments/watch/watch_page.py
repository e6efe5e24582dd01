"""Rumours as they spread, as a page with a slider: by itself, or as a section of a report."""

from __future__ import annotations

import html
import sys
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from msgspec.structs import replace

from rumormill.engine.trace import Bundle, Trace
from rumormill.errors import RumormillError
from rumormill.experiments.report.markup import safe_json, template
from rumormill.experiments.spec.errors import own_names
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.experiments.watch.cases import Play, Watched
from rumormill.experiments.watch.cases import watched as watched_games
from rumormill.files import write_atomically
from rumormill.plotting.palette import ON_BLACK, ON_WHITE, arm_colours, ink_on, looks
from rumormill.plotting.rendering import made_folder

REPORT_ROUNDS, REPORT_AGENTS = 40, 20
_COMMAND = "<code>rumormill watch SPEC</code> shows them."


def write_watch_page(watched: Watched, path: Path) -> Path:
    """Write the page; it gets its name only when it is whole."""
    made_folder(path.parent)
    write_atomically(path, watch_html(watched).encode())
    return path


def watch_html(watched: Watched) -> str:
    """The page by itself."""
    return Template(template("watch-page.html")).substitute(
        title=html.escape(watched.title),
        name=html.escape(watched.name),
        where=html.escape(watched.where),
        section=watch_section(watched),
        css=template("report.css") + template("watch.css"),
        chart=template("chart.js"),
        js=template("watch.js"),
    )


def watch_section(watched: Watched) -> str:
    """The picture, its slider and its key, with what they show; needs watch.css, chart.js and watch.js."""
    return Template(template("watch.html")).substitute(
        remarks=" ".join(html.escape(remark) for remark in watched.remarks),
        data=safe_json(watch_data(watched)),
    )


def report_section(spec: Spec) -> str:
    """The same for a report: fewer agents and rounds; own classes only if this process has played them."""

    def is_loaded(part: PolicyPart) -> bool:
        own = own_names(replace(spec, policies=[part]))
        return all(name.partition(":")[0] in sys.modules for name in own)

    shown = [part.label for part in spec.policies if is_loaded(part)]
    if not shown:
        return f"<p>Own classes are not imported for a report. {_COMMAND}</p>"
    try:
        seen = watched_games(spec, rounds=REPORT_ROUNDS, agents=REPORT_AGENTS, policies=shown)
    except RumormillError:  # the data of its network are somewhere else
        return "<p>This game cannot be played again here.</p>"
    return watch_section(seen)


def watch_data(watched: Watched) -> dict[str, Any]:
    """All that the page draws."""
    seen = watched.plays[0].record
    colours = [arm_colours(watched.gaps, ramp) for ramp in (ON_WHITE, ON_BLACK)]
    look = looks(watched.labels)
    return {
        "agents": watched.agents,
        "places": np.round(watched.places, 4).tolist(),
        "links": watched.network.edges().tolist(),
        "arms": [
            {"mean": float(f"{mean:.3g}"), "light": [light, ink_on(light)], "dark": [dark, ink_on(dark)]}
            for mean, light, dark in zip(watched.means, *colours, strict=True)
        ],
        "costs": watched.costs,
        # One number where the best arm is the same for all agents and rounds.
        "best": int(seen.best[0, 0]) if (seen.best == seen.best[0, 0]).all() else seen.best.tolist(),
        "away": [np.flatnonzero(~row).tolist() for row in seen.up],
        "liars": np.flatnonzero(seen.lies).tolist(),
        "plays": [
            {
                "name": play.label,
                "colour": look[play.label].colour,
                "dash": look[play.label].dash,
                "symbol": look[play.label].symbol,
                **_play(play),
            }
            for play in watched.plays
        ],
    }


def _play(play: Play) -> dict[str, Any]:
    seen = play.record
    return {
        "gamma": play.gamma,
        "regret": [float(f"{value:.5g}") for value in seen.regret],
        "actions": seen.actions.tolist(),
        "rewards": [[None if np.isnan(x) else float(f"{x:.3g}") for x in row] for row in seen.rewards],
        "said": _said(seen),
        "odd": [_odd(bundle) for bundle in seen.bundles if _is_odd(bundle)],
    }


def _said(seen: Trace) -> list[list[list[int]]]:
    """By round and agent, its messages: the origin plus the number of agents times the age."""
    n_agents = seen.network.n_agents
    return [
        [[origin + n_agents * (t - born) for origin, born in batch] for batch in sent]
        for t, sent in enumerate(seen.outgoing, start=1)
    ]


def _is_odd(bundle: Bundle) -> bool:
    return bundle.fate != "arrived" or bundle.arrived != bundle.sent or bundle.missing > 0


def _odd(bundle: Bundle) -> list[Any]:
    """A bundle that did not simply arrive in its round."""
    return [bundle.sender, bundle.receiver, bundle.sent, bundle.fate, bundle.arrived, bundle.missing]
