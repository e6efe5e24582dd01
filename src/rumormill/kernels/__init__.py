"""Compiled loops: arrays in, arrays out, no validation. The only importer of numba.

Every kernel is a plain loop that also runs as Python (NUMBA_DISABLE_JIT=1), releases the GIL, and adds
floating-point numbers in the order of the reference engine's agents, so that both take the same actions.
"""
