"""The thread team under ThreadSanitizer: its regions, and that weaker orders would be found.

Helgrind knows no atomic operations, and would call each of them a race.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.codegen.llvm.threads.team import team_source
from ansorpy.target import Target

__all__ = ["WEAKENED", "can_sanitize", "run_regions"]

SOURCE = Path(__file__).with_name("team.c")
_FOUND = 66
"""Exit code of a program in which ThreadSanitizer has found a race."""

WEAKENED = {
    "the start of a region": ("store atomic i64 %number, ptr @region release", "release"),
    "seeing a region": ("%number = load atomic i64, ptr @region acquire", "acquire"),
    "the end of a piece": ("atomicrmw sub ptr @undone, i64 1 release", "release"),
    "seeing the end of a region": ("%undone = load atomic i64, ptr @undone acquire", "acquire"),
    "giving the team back": ("store atomic i32 0, ptr @busy release", "release"),
    "taking the team": ("cmpxchg ptr @busy, i32 0, i32 1 acq_rel", "acq_rel"),
}
"""Accesses of the team, and the order in each that is weakened to ``monotonic``."""


def can_sanitize() -> bool:
    """Whether there is a compiler for LLVM IR with ThreadSanitizer."""
    return shutil.which("clang") is not None


def run_regions(callers: int, regions: int, seed: int, weakened: str = "") -> bool:
    """Run *regions* regions from each of *callers* threads; returns whether no race was found.

    Raises:
        AssertionError: A region computed something else, or the process crashed.
    """
    text = team_source(Target.host())
    if weakened:
        access, order = WEAKENED[weakened]
        assert access in text, f"the team has no {access}"
        text = text.replace(access, access.replace(order, "monotonic"))
    with TemporaryDirectory(prefix="ansorpy-team-") as name:
        folder = Path(name)
        _compile(text, folder)
        numbers = map(str, (callers, regions, seed))
        command = ["./team", *numbers]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, _FOUND), f"ended with {done.returncode}:\n{done.stderr[:4000]}"
    if not weakened:
        assert done.returncode == 0, done.stderr[:4000]
    return done.returncode == 0


def _compile(text: str, folder: Path) -> None:
    """Compile the team *text* with ``team.c`` to the program ``team`` in *folder*."""
    instrumented = re.sub(r"^(define .*\)) \{$", r"\1 sanitize_thread {", text, flags=re.M)
    (folder / "team.ll").write_text(instrumented)
    sanitized = "clang", "-w", "-O1", "-g1", "-fsanitize=thread"
    # Versions of clang before 15 read this team only with the option, and C only without it.
    opaque = ("-mllvm", "-opaque-pointers") if _clang_version() < 15 else ()
    for command in (
        (*sanitized, *opaque, "-c", "team.ll", "-o", "team.o"),
        (*sanitized, "-pthread", str(SOURCE), "team.o", "-o", "team"),
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def _clang_version() -> int:
    said = subprocess.run(["clang", "-dumpversion"], capture_output=True, text=True, check=True)
    return int(said.stdout.split(".")[0])
