"""Live: the simulator's agents as processes on a real network.

`core` is a state machine without socket, clock, file or randomness; drivers surround it: the process that
`rumormill node` starts (`io`), and in the tests a deterministic simulation and a lock-step game.
"""
