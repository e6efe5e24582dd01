"""`python -m rumormill`: the command line."""

from rumormill.cli import main

main()
