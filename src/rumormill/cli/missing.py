"""What to say where only the core is installed."""

EXTRAS = {"cryptography": "node", "ray": "cluster"}


def missing_library(error: ModuleNotFoundError) -> str:
    """Which extra brings the library that is not there."""
    extra = EXTRAS.get((error.name or "").partition(".")[0], "lab")
    return f"{error.name} is not installed, and this needs it: pip install 'rumormill[{extra}]'"
