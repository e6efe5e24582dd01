"""Measured tables of README.md and docs: put into their pages, and measured again if their code has changed.

    python -m scripts.measured_tables                    # what is older than its code, up to 5 minutes each
    python -m scripts.measured_tables --minutes 300      # also what takes longer
    python -m scripts.measured_tables --only speed live  # measure these, whatever their age
    python -m scripts.measured_tables --check            # measure nothing; exit 1 if a page is not as stored

Which tables there are stands in numbers.toml; what was measured, of which code and on which processor, in
docs/numbers.json. Pages are only ever written from there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STORE = Path("docs") / "numbers.json"
MINUTES = 5.0
UNKNOWN = ""


@dataclass(frozen=True)
class Table:
    """A table of measured numbers: where it stands, what prints it, and the code that it measures."""

    name: str
    page: str
    command: str
    code: tuple[str, ...]
    minutes: float
    whole: bool = False

    def of_page(self, root: Path = ROOT) -> str:
        """The table as it stands in its page."""
        text = (root / self.page).read_text(encoding="utf-8")
        found = re.findall(f"{self._mark('begin')}\n\n(.*?)\n\n{self._mark('end')}", text, re.DOTALL)
        if len(found) != 1:
            raise SystemExit(f"{self.page} has {len(found)} tables marked {self.name!r}, not one")
        return str(found[0])

    def put(self, text: str, root: Path = ROOT) -> None:
        """Write the table into its page."""
        before = self.of_page(root)
        path = root / self.page
        old, new = (f"{self._mark('begin')}\n\n{each}\n\n" for each in (before, text))
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def _mark(self, end: str) -> str:
        return f"<!-- {self.name}: {end} -->"

    def code_sha256(self, root: Path = ROOT) -> str:
        """Of all code and specs that the table measures."""
        digest = hashlib.sha256()
        for place in self.code:
            path = root / "src" / "rumormill" / place
            files = (
                [path]
                if path.is_file()
                else sorted(each for each in path.rglob("*") if each.suffix in (".py", ".toml"))
            )
            if not files:
                raise SystemExit(f"numbers.toml: {self.name}: there is no code in {place}")
            for file in files:
                digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
        return digest.hexdigest()


def read_tables() -> list[Table]:
    """The tables that are registered."""
    found = tomllib.loads((Path(__file__).with_name("numbers.toml")).read_text(encoding="utf-8"))
    return [Table(name, **{**each, "code": tuple(each["code"])}) for name, each in found.items()]


def read_store(root: Path = ROOT) -> dict[str, Any]:
    """What was measured: by name, the text, the code and the processor."""
    stored: dict[str, Any] = json.loads((root / STORE).read_text(encoding="utf-8"))
    return stored


def older(tables: list[Table], root: Path = ROOT) -> list[Table]:
    """Tables that were measured on other code than there is now."""
    stored = read_store(root)
    return [each for each in tables if stored[each.name]["code_sha256"] != each.code_sha256(root)]


def differing(tables: list[Table], root: Path = ROOT) -> list[Table]:
    """Tables that stand otherwise in their page than they were stored."""
    stored = read_store(root)
    return [each for each in tables if stored[each.name]["text"] != each.of_page(root)]


def measure(table: Table) -> dict[str, str]:
    """Run the command; its table with what it was measured on."""
    code = table.code_sha256()
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": paths, "PATH": path}
    run = subprocess.run(
        table.command, shell=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    lines = [line for line in run.stdout.strip().splitlines() if table.whole or line.startswith("|")]
    if run.returncode or not lines:
        raise SystemExit(f"{table.name}: `{table.command}` ended with {run.returncode} and {len(lines)} rows")
    return {"text": "\n".join(lines), "code_sha256": code, "processor": processor()}


def processor() -> str:
    """The processor as it calls itself."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text("utf-8")) if info.exists() else []
    return f"{names[0] if names else platform.processor() or 'unknown'}, {os.cpu_count()} cores"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="measure these tables")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="measure what takes at most so long")
    parser.add_argument("--check", action="store_true", help="measure nothing, compare pages with the store")
    options = parser.parse_args()
    tables = read_tables()
    if unknown := set(options.only) - {each.name for each in tables}:
        parser.error(f"no table is called {', '.join(unknown)}: {', '.join(each.name for each in tables)}")
    stale = older(tables)
    wrong = differing(tables) if options.check else []
    for each in wrong:
        print(f"{each.page}: the table {each.name!r} is not the stored one: run `make numbers`")
    if options.check:
        for each in stale:
            print(f"older than its code: {each.name} in {each.page}; `{each.command}`")
        return 1 if wrong else 0
    asked = [each for each in stale if each.minutes <= options.minutes]
    if options.only:
        asked = [each for each in tables if each.name in options.only]
    stored = read_store()
    for each in asked:
        print(f"{each.name}: {each.command} (about {each.minutes:g} minutes)", flush=True)
        stored[each.name] = measure(each)
        (ROOT / STORE).write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for each in tables:
        each.put(stored[each.name]["text"])
    for each in stale:
        if each not in asked:
            print(f"still older than its code: {each.name}, {each.minutes:g} minutes: `{each.command}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
