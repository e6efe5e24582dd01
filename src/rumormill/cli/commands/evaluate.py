"""`rumormill evaluate`: what another policy would have paid, from a log with propensities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rumormill.cli.arguments import Json
from rumormill.cli.printing import note, print_json, print_table


def evaluate(
    log: Annotated[Path, typer.Argument(help="A log with the columns arm, reward (or cost) and propensity.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help='"always=ARM", "uniform" (the default), "A=0.7,B=0.3"; repeatable.'),
    ] = None,
    arm: Annotated[str, typer.Option(help="The column of the arm.")] = "arm",
    reward: Annotated[str | None, typer.Option(help="The column of the value; reward or cost.")] = None,
    propensity: Annotated[str, typer.Option(help="The column of the propensity.")] = "propensity",
    json: Json = False,
) -> None:
    """Say what another policy would have paid.

    Clipped IPS and doubly robust estimates per decision, with 95 % intervals that hold for heavy tails.
    """
    from rumormill.advice.off_policy import evaluate_file

    found = [
        evaluate_file(log, each, arm=arm, reward=reward, propensity=propensity)
        for each in policy or ["uniform"]
    ]
    if json:
        print_json([each.as_dict() for each in found])
        return
    logged = found[0].logged
    rows = [
        {
            "policy": "as logged",
            "estimate": logged.estimate,
            "low": logged.low,
            "high": logged.high,
            "by": "mean",
        }
    ]
    for each in found:
        for by, interval in (("doubly robust", each.doubly_robust), ("clipped IPS", each.ips)):
            ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
            rows.append({"policy": each.policy, **ends, "by": by})
    print_table(rows, title=f"{log}: value of a decision")
    for count, what in ((found[0].without, "without a propensity"), (found[0].fixed, "with propensity 1")):
        if count:
            note(f"{count:,} rows {what} are left out of the estimates")
    note("95 % intervals for tails of index 1.5 or more; they assume arms that do not change")
