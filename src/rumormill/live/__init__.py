"""Live: the simulator's agents as processes on a real network.

`node` is a state machine without socket, clock, file or randomness; everything around it is a driver:
the deterministic simulation of the tests, the lock-step game, and the process that `rumormill node` starts.
"""
