"""Run the checks, each in its own process, and store their outcomes.

python -m benchmarks.cuda.smoke.stage NAME      # one check, in this process
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.errors import ForeignFile
from benchmarks.command import say
from benchmarks.cuda.smoke.checks import CHECKS
from benchmarks.cuda.smoke.machine import Skipped, SmokeGpu, real

__all__ = ["Checked", "SmokeRun", "check_all", "check_one", "read_smoke"]

_LIMIT_S = 60.0


class Checked(BaseModel):
    """The outcome of one check, and its reason."""

    model_config = ConfigDict(extra="forbid")

    name: str
    outcome: Literal["ok", "skipped", "failed"]
    said: str = ""
    took_s: float = 0.0

    @property
    def line(self) -> str:
        return f"{self.name}: {self.outcome}{self.said and ', ' + self.said} ({self.took_s:.0f} s)"


class SmokeRun(BaseModel):
    """All checks on one GPU."""

    model_config = ConfigDict(extra="forbid")

    gpu: str
    checks: list[Checked] = []

    @property
    def failed(self) -> bool:
        return any(check.outcome == "failed" for check in self.checks)


def check_one(name: str, gpu: Callable[[], SmokeGpu] = real) -> Checked:
    """Run the check *name* in this process."""
    begin = monotonic()
    try:
        outcome, said = "ok", CHECKS[name](gpu())
    except Skipped as reason:
        outcome, said = "skipped", str(reason)
    except Exception as error:  # the other checks run whatever happens in this one
        outcome, said = "failed", f"{type(error).__name__}: {error}".strip().replace("\n", " | ")
    return Checked.model_validate(
        {"name": name, "outcome": outcome, "said": said[:400], "took_s": monotonic() - begin}
    )


def check_all(
    run: SmokeRun, file: Path, *, again: bool = False,
    module: str = "benchmarks.cuda.smoke.stage", limit_s: float = _LIMIT_S,
) -> SmokeRun:  # fmt: skip
    """Run the checks that have not passed in *run*; print and store each outcome.

    Args:
        file: Written after each check.
        again: Also run checks that passed or were skipped before.
        module: The module that runs one check in a new process and prints its outcome as JSON.
    """
    held = {c.name: c for c in run.checks if c.outcome != "failed" and not again}
    for name in CHECKS:
        found = held.get(name) or _in_a_process([sys.executable, "-m", module, name], name, limit_s)
        say(found.line + (" before" if name in held else ""))
        run.checks = [c for c in run.checks if c.name != name] + [found]
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(run.model_dump_json(indent=2) + "\n")
        part.replace(file)
    return run


def _in_a_process(command: Sequence[str], name: str, limit_s: float) -> Checked:
    begin = monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        said = f"no answer within {limit_s:.0f} s"
        return Checked(name=name, outcome="failed", said=said, took_s=limit_s)
    try:
        return Checked.model_validate_json(done.stdout.strip().rpartition("\n")[2])
    except ValidationError:
        last = done.stderr.strip().rpartition("\n")[2]
        said = f"the process ended with {done.returncode}: {last}"[:400]
        return Checked(name=name, outcome="failed", said=said, took_s=monotonic() - begin)


def read_smoke(file: Path, gpu: str) -> SmokeRun:
    """The outcomes for *gpu* in *file*; empty if there is no such file.

    Raises:
        ForeignFile: The file contains something else, or was written on another GPU.
    """
    if not file.exists():
        return SmokeRun(gpu=gpu)
    try:
        run = SmokeRun.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise ForeignFile(f"{file} has no checks of a GPU: {error}") from None
    if run.gpu != gpu:
        raise ForeignFile(
            f"the checks are of {run.gpu}, not of {gpu}", hint="name another file with --json"
        )
    return run


if __name__ == "__main__":
    print(check_one(sys.argv[1]).model_dump_json())
