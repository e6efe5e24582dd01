"""Analysis of a run: `summarise(run)` once; terminal, figures and report read the Summary."""
