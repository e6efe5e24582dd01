"""The package as others get it: a wheel, installed outside the checkout, reproduces the first figure."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
CORE = {"numpy", "msgspec"}


def call(words: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command far from the checkout: nothing of it may be found by accident."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["COLUMNS"] = "160"  # or tables are broken into lines
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left behind in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, copy)
    shutil.copytree(
        CHECKOUT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    call([*pip, "wheel", copy, "--no-deps", "--no-build-isolation", "--wheel-dir", folder], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it; its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    call([*pip, "install", "--no-deps", "--no-index", wheel], folder)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    # After the fresh ones: what is installed there comes first.
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return python.parent


def test_everything_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    source = CHECKOUT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "rumormill").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"rumormill/py.typed", "rumormill/experiments/spec/shipped/fig1a.toml"} <= wanted
    assert any(name.endswith(".html") for name in wanted)
    assert {name for name in inside if name.startswith("rumormill/")} == wanted


def test_the_sources_have_what_belongs_to_them(tmp_path: Path) -> None:
    """An sdist of what git knows: docs, changelog and examples are in it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    copy = tmp_path / "copy"
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, copy / name)
    build = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    call([sys.executable, "-c", build], copy)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        *("README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "docs/index.md", "docs/conf.py"),
        *("docs/notebooks/first-game.ipynb", "docs/figures/fig1a-quick.png", "tests/test_wheel.py"),
        *("src/rumormill/__init__.py", "scripts/docs/stage.py"),
    ):
        assert name in inside, name
    assert {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "examples").iterdir()} <= inside


def test_what_an_index_is_told(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(name))
    assert told["Author"] == "The rumormill authors"
    said = told.get_all("Classifier", [])
    assert "Operating System :: POSIX :: Linux" in said
    assert "Programming Language :: Python :: 3.13" in said


def test_the_core_needs_two_libraries_and_the_lab_the_others(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        needs = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    always = {re.split(r"[<>=~ ;\[]", each)[0] for each in needs if "extra ==" not in each}
    lab = {re.split(r"[<>=~ ;\[]", each)[0] for each in needs if re.search(r"extra == .lab.", each)}
    assert always == CORE
    assert {"numba", "scipy", "networkx", "polars", "matplotlib", "typer"} <= lab
    assert not lab & CORE


def test_the_installed_command_reproduces_the_first_figure(installed: Path, tmp_path: Path) -> None:
    where = call([installed / "python", "-c", "import rumormill; print(rumormill.__file__)"], tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(installed.parent)
    words = ("reproduce", "fig1a", "--quick", "--trials", "2", "--horizon", "200")
    done = call([installed / "rumormill", *words], tmp_path)
    assert "The claims: none of" in done.stdout
    assert "fig1a (custom): group regret at round 200, 2 trials" in done.stdout
    folder = tmp_path / "runs" / "fig1a-2x200"
    assert f"report: {folder.relative_to(tmp_path) / 'report.html'}" in done.stderr
    for name in ("manifest.json", "results.parquet", "report.html", "figures/regret.png"):
        assert (folder / name).stat().st_size > 500, name
