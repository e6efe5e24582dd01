"""Palette, style, curves and files of all figures; below the engine. matplotlib is imported when drawing."""
