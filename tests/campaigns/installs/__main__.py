"""``python -m tests.campaigns.installs``: the wheel works in an empty environment of each Python.

The wheel is built from the source distribution, so that both are complete.  The Pythons are those
on the PATH and those of pyenv that are new enough.  The exit code is 1 if one failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_ROOT = Path(__file__).parents[3]
_SMOKE = Path(__file__).with_name("smoke.py")
_NEWEST = 20
"""Minor versions of Python that are looked for: 3.11 to this one."""
_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
_VERSION = "import sys; print(sys.version_info[0], sys.version_info[1], sys.executable)"


def main() -> int:
    """Build the wheel, try it with each Python, and print what was found."""
    given = _arguments()
    failed = 0
    with TemporaryDirectory(prefix="ansorpy-installs-") as name:
        folder = Path(name)
        wheel = _built(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        for version, python in sorted(_pythons(given.python or _at_hand()).items()):
            began = time.monotonic()
            problem, size_mb = _tried(python, wheel, folder / version)
            said = problem or f"ok, {size_mb} MB before modules are compiled"
            print(f"Python {version}: {said}, {time.monotonic() - began:.0f} s", flush=True)
            failed += bool(problem)
    return int(bool(failed))


def _built(folder: Path) -> Path:
    """The wheel of the source distribution; both are left in *folder*."""
    _run([sys.executable, "-c", _SDIST, str(folder)], _ROOT)
    [sdist] = folder.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    _run([*pip, "--wheel-dir", str(folder), str(sdist)], folder)
    [wheel] = folder.glob("*.whl")
    return wheel


def _at_hand() -> list[str]:
    """Pythons on the PATH and of pyenv."""
    names = [f"python3.{minor}" for minor in range(11, _NEWEST + 1)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [sys.executable, *filter(None, map(shutil.which, names))]
    return found + [str(path) for path in sorted(pyenv.glob("*/bin/python"))]


def _pythons(candidates: Iterable[str]) -> dict[str, str]:
    """One interpreter of each version that the package allows; what does not start is no Python."""
    wanted = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    least = int(wanted.removeprefix(">=3."))
    found: dict[str, str] = {}
    for python in candidates:
        told = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=False)
        if told.returncode == 0:
            major, minor, executable = told.stdout.split(maxsplit=2)
            if major == "3" and int(minor) >= least:
                found.setdefault(f"3.{int(minor):02}", executable.strip())
    return found


def _tried(python: str, wheel: Path, folder: Path) -> tuple[str, int]:
    """What went wrong with the wheel in an environment of *python*, and the megabytes of that."""
    environment, empty = folder / "venv", folder / "empty"
    empty.mkdir(parents=True)
    own = str(environment / "bin" / "python")
    try:
        _run([python, "-m", "venv", str(environment)], empty)
        # Most modules are never imported here: compiling them all takes longer than the rest.
        _run([own, "-m", "pip", "install", "--quiet", "--no-compile", str(wheel)], empty)
        _run([own, "-m", "pip", "check"], empty)
        size_mb = sum(f.lstat().st_size for f in environment.rglob("*") if f.is_file()) // 1_000_000
        _run([own, "-I", str(_SMOKE)], empty)
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)} failed:\n{error.stdout}{error.stderr}", 0
    finally:
        shutil.rmtree(environment, ignore_errors=True)
    return "", size_mb


def _run(command: Sequence[str], folder: Path) -> None:
    """Run *command* in *folder*, with databases and locks of its own."""
    own = {f"ANSORPY_{name}": str(folder / "cache") for name in ("CACHE", "STATE")}
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run(
        command, cwd=folder, env={**kept, **own, "TMPDIR": str(folder)}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.campaigns.installs", description=__doc__)
    parser.add_argument("--python", action="append", help="an interpreter; repeatable")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
