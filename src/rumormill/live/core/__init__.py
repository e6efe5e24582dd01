"""The state machine of a node: no socket, file or clock."""
