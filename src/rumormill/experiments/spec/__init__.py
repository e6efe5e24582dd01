"""The experiment files that come with the package, as they are; `reading` makes specs of them."""

from __future__ import annotations

from importlib import resources


def spec_names() -> list[str]:
    """The experiments that come with the package."""
    folder = resources.files("rumormill.experiments.spec") / "shipped"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def spec_text(name: str) -> str:
    """The file of one of them."""
    return (resources.files("rumormill.experiments.spec") / "shipped" / f"{name}.toml").read_text("utf-8")
