"""``python -m benchmarks.cuda``: compare with cuBLAS, cuDNN and torch on this machine's GPU.

Matmuls of size 4096 (float32 without TF32; float16 on tensor cores), then the operator suite at
batch 1, then networks that the script defines in torch.  The ratio is torch's time over ours: above
1 we win.  --json is written after every step and --db after every trial, so a run that was stopped,
or ran out of its minutes, can be resumed.

    pip install 'ansorpy[cuda]' torch
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy import __version__
from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.report.tables import Table, show
from ansorpy.target import Target
from benchmarks.command import exit_code, say
from benchmarks.cuda.steps import Settings, Step, cuda_torch, steps

__all__ = ["Outcome", "Run", "main", "parser", "work_through"]

_LEAST_S = 15.0
"""Minimum seconds left for starting a step."""


class Outcome(BaseModel):
    """One step's result: time per call of ours and of torch's, or why there are none."""

    model_config = ConfigDict(extra="forbid")

    name: str
    wanted: float
    ours_ms: float | None = None
    peer_ms: float | None = None
    took_s: float = 0.0
    failure: str = ""

    @property
    def ratio(self) -> float | None:
        """torch's time over ours."""
        return None if not self.ours_ms or not self.peer_ms else self.peer_ms / self.ours_ms


class Run(BaseModel):
    """All measurements on one machine."""

    model_config = ConfigDict(extra="forbid")

    machine: dict[str, str]
    trials: int
    outcomes: list[Outcome] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 1 when a step failed."""
    options = parser().parse_args(arguments)
    return exit_code(lambda: _main(options))


def parser() -> argparse.ArgumentParser:
    """Build the command line parser."""
    p = argparse.ArgumentParser(
        prog="python -m benchmarks.cuda",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--only", nargs="+", metavar="GLOB", default=[], help="names of steps")
    p.add_argument("--list", action="store_true", help="print the names of the steps and end")
    p.add_argument("--minutes", type=float, default=25.0, help="begin no step after them")
    p.add_argument("--trials", type=int, default=32, help="programs to measure a case")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--db", type=Path, default=Path("build/cuda.db"), help="records of the trials")
    p.add_argument("--json", type=Path, default=Path("build/cuda.json"), metavar="FILE")
    p.add_argument("--again", action="store_true", help="measure what FILE holds once more")
    p.add_argument("--show", type=Path, metavar="FILE", help="measure nothing: print FILE's table")
    return p


def _main(options: argparse.Namespace) -> int:
    if options.list:
        print("\n".join(step.name for step in steps(options.only)))
        return 0
    if options.show is not None:
        run = _read(options.show)
    else:
        end = monotonic() + 60 * options.minutes
        Target.parse("cuda")  # reports what is missing, before torch does
        torch = cuda_torch()
        run = Run(machine=_machine(torch), trials=options.trials)
        if options.json.exists():
            run.outcomes = _earlier(_read(options.json), run)
        options.db.parent.mkdir(parents=True, exist_ok=True)
        settings = Settings(options.db, options.trials, options.seed)
        chosen = steps(options.only)
        work_through(chosen, torch, settings, run, options.json, end, again=options.again)
    _print(run)
    return int(any(outcome.failure for outcome in run.outcomes))


def work_through(
    chosen: Sequence[Step],
    torch: Any,
    settings: Settings,
    run: Run,
    file: Path,
    end: float,
    *,
    again: bool = False,
) -> None:
    """Measure what *run* lacks, until the time *end*; *file* is updated after each step."""
    held = {outcome.name: outcome for outcome in run.outcomes if not outcome.failure}
    for step in chosen:
        left_s = end - monotonic()
        if left_s < _LEAST_S:
            say(f"{step.name}: no time left; run the same command again")
            return
        if step.name in held and not again:
            continue
        outcome = _measured(step, torch, settings, min(step.limit_s, left_s))
        say(_line(outcome))
        run.outcomes = [o for o in run.outcomes if o.name != step.name] + [outcome]
        _write(run, file)


def _measured(step: Step, torch: Any, settings: Settings, limit_s: float) -> Outcome:
    outcome = Outcome(name=step.name, wanted=step.wanted)
    begin = monotonic()
    try:
        ours_s, peer_s = step.measure(torch, settings, limit_s)
        outcome.ours_ms, outcome.peer_ms = ours_s * 1e3, peer_s * 1e3
    except (AnsorpyError, RuntimeError) as error:  # torch's own errors are RuntimeErrors
        outcome.failure = f"{type(error).__name__}: {error}".splitlines()[0]
    outcome.took_s = monotonic() - begin
    return outcome


def _machine(torch: Any) -> dict[str, str]:
    from cupy.cuda import runtime

    return {
        "gpu": Target.parse("cuda").features,
        "driver": str(runtime.driverGetVersion()),
        "torch": str(torch.__version__),
        "cudnn": str(torch.backends.cudnn.version()),
        "ansorpy": __version__,
        "python": platform.python_version(),
    }


def _earlier(held: Run, run: Run) -> list[Outcome]:
    """The outcomes in *held*, if it was measured on the same GPU.

    Raises:
        ForeignFile: It was measured on another GPU.
    """
    if held.machine["gpu"] != run.machine["gpu"]:
        raise ForeignFile(
            f"the results are of {held.machine['gpu']}, not of {run.machine['gpu']}",
            hint="name another file with --json",
        )
    return held.outcomes


def _read(file: Path) -> Run:
    try:
        return Run.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ForeignFile(f"{file} holds no results of this benchmark: {error}") from None


def _write(run: Run, file: Path) -> None:
    """Write atomically: if the run is stopped, the file is the old or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(run.model_dump_json(indent=2) + "\n")
    part.replace(file)


def _line(outcome: Outcome) -> str:
    if outcome.ratio is None:
        return f"{outcome.name}: {outcome.failure}"
    return (
        f"{outcome.name}: {outcome.ours_ms:.4f} ms, torch {outcome.peer_ms:.4f} ms, "
        f"{outcome.ratio:.2f} ({outcome.took_s:.0f} s)"
    )


def _print(run: Run) -> None:
    """Print the machine, a table of the steps, and the suite's geometric mean."""
    print(", ".join(f"{name} {value}" for name, value in run.machine.items()))
    rows = [
        (o.name, _shown(o.ours_ms), _shown(o.peer_ms), _shown(o.ratio), f"{o.wanted:.2f}",
         o.failure)
        for o in run.outcomes
    ]  # fmt: skip
    numbers = ("ours ms", "torch ms", "ratio", "wanted")
    show(Table("", ("step", *numbers, "failure"), tuple(rows), frozenset(numbers)))
    suite = [o.ratio for o in run.outcomes if o.name.startswith("ops.") and o.ratio]
    if suite:
        mean = exp(sum(map(log, suite)) / len(suite))
        print(f"the suite: {mean:.2f} in geometric mean of {len(suite)} cases")


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
