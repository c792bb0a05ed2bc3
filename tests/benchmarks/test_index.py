"""The page of results lists every benchmark, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"


def test_every_command_is_listed_once() -> None:
    modules = [path.with_suffix("") for path in FOLDER.glob("[!_]*.py")]
    packages = [path.parent for path in FOLDER.rglob("__main__.py")]
    commands = sorted(".".join(path.relative_to(ROOT).parts) for path in (*modules, *packages))
    page = (ROOT / "docs" / "results" / "index.md").read_text()
    assert sorted(re.findall(r"^\| `python -m (benchmarks\.[\w.]+)` \|", page, re.M)) == commands
