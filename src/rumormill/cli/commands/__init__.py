"""The commands; `cli/app.py` has the table of their files."""
