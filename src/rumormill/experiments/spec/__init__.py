"""Experiment files: their form, how they are read, and what is built from them."""
