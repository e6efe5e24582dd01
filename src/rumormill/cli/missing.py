"""What to say where only the core is installed."""


def missing_library(error: ModuleNotFoundError) -> str:
    """Which extra brings the library that is not there."""
    extra = "node" if (error.name or "").partition(".")[0] == "cryptography" else "lab"
    return f"{error.name} is not installed, and this needs it: pip install 'rumormill[{extra}]'"
