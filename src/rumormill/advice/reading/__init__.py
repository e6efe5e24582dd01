"""Logs as people have them, read into typed columns."""
