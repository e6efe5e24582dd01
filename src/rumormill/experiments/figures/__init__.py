"""Figures of a run, and one table of them; each takes the Summary and draws."""

from rumormill.experiments.figures.registry import FIGURES, draw_all, main_figure

__all__ = ["FIGURES", "draw_all", "main_figure"]
