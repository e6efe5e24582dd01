"""Experiments: specs, runs that can be stopped and go on, tables, figures, verdicts and reports."""
