"""Advice: read a log, check the model, search candidates by replay or simulation, report."""
