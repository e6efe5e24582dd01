"""Advice as one HTML page in the style of the report; it needs nothing else."""

from __future__ import annotations

import html
from importlib import resources
from pathlib import Path

from rumormill.advice.figures import model_figure, price_figure
from rumormill.advice.mesh_output import mesh_of
from rumormill.advice.report_text import (
    LogAdvice,
    alarms,
    basis,
    findings,
    group_lines,
    headline,
    in_short,
    recommendation,
    reported_on,
)
from rumormill.experiments.report.markup import picture, table
from rumormill.files import write_atomically
from rumormill.mesh.file import mesh_text
from rumormill.text import number, plural


def write_page(advice: LogAdvice, path: Path) -> Path:
    """Write the page; it gets its name only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page_html(advice).encode())
    return path


def page_html(advice: LogAdvice) -> str:
    """The page as text."""
    log = advice.log
    css = (resources.files("rumormill.experiments.report") / "template" / "report.css").read_text("utf-8")
    said = recommendation(advice)
    tried = f"Every setting that was tried on {basis(advice)}."
    unit = f", in {html.escape(log.unit)} per request" if log.unit else ""
    failing = len(alarms(advice))
    first = "".join(f'<p class="notice">{html.escape(text)}</p>' for text in said[:failing])
    rest = "".join(f"<p>{html.escape(text)}</p>" for text in said[failing:])
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in (*advice.notes, *advice.model.why_moments))
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Advice: {html.escape(log.name)}</title><style>{css}</style></head>
<body><main>
<header><p class="kicker">rumormill · advice · {html.escape(log.name)}</p>
<h1>{html.escape(in_short(advice))}</h1>
<p class="question">{html.escape(headline(advice))}</p></header>
<section id="advice"><h2>Advice</h2>{first}{rest}{_groups(advice)}
<pre><code>{html.escape(advice.code)}</code></pre></section>
<section id="lines"><h2>What it comes to{unit}</h2>
<p>Chosen on {basis(advice)}, reported on {reported_on(advice)}. Means with
their outermost values moved in; bands of 95 % from a block bootstrap over time.</p>{_lines(advice)}</section>
<section id="model"><h2>The model, tested</h2>{_findings(advice)}
{picture(model_figure(advice), "svg", "The checks of the model, one by one.")}
<div class="pictures">{picture(price_figure(advice), "svg", tried)}</div></section>
<section id="settings"><h2>{plural(len(advice.choice.finals), "setting")} in the final</h2>
<p>Sorted by what was lost per request in the worse half of the replays; by agents alone, in the recorded
order where that was worse.</p>
{_settings(advice)}</section>
<section id="act"><h2>A file to act on</h2><details><summary>mesh.toml</summary>
<pre><code>{html.escape(mesh_text(mesh_of(advice)))}</code></pre></details></section>
<section id="notes"><h2>Notes</h2><ul>{notes}</ul></section>
</main></body></html>
"""


def _groups(advice: LogAdvice) -> str:
    lines = group_lines(advice)
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _lines(advice: LogAdvice) -> str:
    head = ["way", "mean", "95 % band", "median", "p90"]
    rows = [
        [
            line.name,
            number(line.mean),
            f"{number(line.low)} – {number(line.high)}",
            number(line.median),
            number(line.p90),
        ]
        for line in advice.baselines
    ]
    return table(head, rows, ["", "number", "number", "number", "number"])


def _findings(advice: LogAdvice) -> str:
    head = ["check", "answer", "number", "in words"]
    rows = [[each.check, each.verdict, each.number, each.sentence] for each in findings(advice)]
    return table(head, rows, ["", "word", "number", ""])


def _settings(advice: LogAdvice) -> str:
    head = ["setting", "lost when it went badly", "on average", "above the best (95 %)", "messages a round"]
    head += ["lemma", ""]
    rows = [
        [
            row["setting"],
            number(row["score"]),
            number(row["loss"]),
            f"{number(row['worse_low'])} – {number(row['worse_high'])}",
            number(row["messages_per_round"]),
            "covers it" if row["lemma"] else "none",
            "recommended" if row["recommended"] else "",
        ]
        for row in advice.rows()
    ]
    return table(head, rows, ["", "number", "number", "number", "number", "word", "word"])
