"""Logs from files: formats, roles of columns, values."""
