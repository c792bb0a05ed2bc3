"""``python -m benchmarks.cuda``: compare with cuBLAS, cuDNN and torch on this machine's GPU.

First, a smoke stage touches every call of the driver on tiny problems.  Then come matmuls of 4096
(float32 without TF32; float16 in tensor cores), networks that the script defines in torch, and the
operator suite at batch 1.  The ratio is torch's time divided by ours; above 1, we are faster.
--json is written after every step and --db after every trial, so a run that was stopped, or whose
minutes were up, resumes where it ended.

    pip install 'ansorpy[cuda]' torch
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy import __version__
from ansorpy.codegen.cuda.device.nvrtc import version as nvrtc_version
from ansorpy.errors import ForeignFile, MissingDependency
from ansorpy.report.tables import Table, show
from ansorpy.target import Target
from benchmarks.command import exit_code, say, write_whole
from benchmarks.cuda.needed import missing, sentence
from benchmarks.cuda.smoke.stage import check_all, read_smoke
from benchmarks.cuda.steps import Settings, Step, cuda_torch, steps

__all__ = [
    "Outcome", "Run", "earlier_outcomes", "going_on", "main", "parser", "read_run", "search_s",
    "work_through",
]  # fmt: skip

_LEAST_S = 3.0
"""A step does not begin with less time for its search."""


class Outcome(BaseModel):
    """One step's result: milliseconds of our call and of torch's, or the reason for their absence.

    ``trace`` is the traceback of a failure; ``note`` is a remark on the figures.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    wanted: float
    ours_ms: float | None = None
    peer_ms: float | None = None
    took_s: float = 0.0
    failure: str = ""
    trace: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """torch's time divided by ours."""
        return None if not self.ours_ms or not self.peer_ms else self.peer_ms / self.ours_ms


class Run(BaseModel):
    """All results of one machine."""

    model_config = ConfigDict(extra="forbid")

    machine: dict[str, str]
    trials: int
    outcomes: list[Outcome] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a step failed."""
    options = parser().parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code(lambda: _main(options, given))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    p = argparse.ArgumentParser(
        prog="python -m benchmarks.cuda",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--only", nargs="+", metavar="GLOB", default=[], help="names of steps")
    p.add_argument("--without", nargs="+", metavar="STEP", default=[], help="steps to leave out")
    p.add_argument("--list", action="store_true", help="print the names of the steps and exit")
    p.add_argument("--minutes", type=float, default=25.0, help="begin no step after this time")
    p.add_argument("--trials", type=int, default=32, help="programs to measure per case")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--db", type=Path, default=Path("build/cuda.db"), help="records of the trials")
    p.add_argument("--json", type=Path, default=Path("build/cuda.json"), metavar="FILE")
    p.add_argument("--again", action="store_true", help="measure again what FILE has")
    p.add_argument("--smoke", action="store_true", help="only the checks that precede the steps")
    p.add_argument("--show", type=Path, metavar="FILE", help="measure nothing: print FILE's table")
    return p


def _main(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    chosen = [step for step in steps(options.only) if step.name not in options.without]
    if options.list:
        print("\n".join(step.name for step in chosen))
        return 0
    is_sound = True
    if options.show is not None:
        run = read_run(options.show)
    else:
        end = monotonic() + 60 * options.minutes
        is_sound = _smoke(options)
        if options.smoke:
            return int(not is_sound)
        run = _begun(options, torch := _gpu_torch())
        settings = Settings(options.db, options.trials, options.seed)
        tried = work_through(chosen, torch, settings, run, options.json, end, again=options.again)
        if tried and _is_lost(torch):
            _go_on(arguments, [*options.without, *tried], (end - monotonic()) / 60)
    _print(run)
    return int(not is_sound or any(outcome.failure for outcome in run.outcomes))


def _smoke(options: argparse.Namespace) -> bool:
    """Touch every call of the driver on tiny problems; True when nothing failed.

    A new process that continues after a lost context finds the outcomes in the file.
    """
    lacking = [name for name in missing() if name != "torch"]
    if lacking:
        raise MissingDependency(sentence(lacking))
    file = options.json.with_name(f"{options.json.stem}.smoke.json")
    run = read_smoke(file, Target.parse("cuda").features)
    return not check_all(run, file, again=options.again and not options.without).failed


def _gpu_torch() -> Any:
    """torch on the GPU; reports missing packages at once, before torch does."""
    lacking = missing()
    if lacking:
        raise MissingDependency(sentence(lacking))
    Target.parse("cuda")
    return cuda_torch()


def _begun(options: argparse.Namespace, torch: Any) -> Run:
    """The run, with the results that its file already has."""
    run = Run(machine=_machine(torch), trials=options.trials)
    if options.json.exists():
        run.outcomes = earlier_outcomes(read_run(options.json), run)
    options.db.parent.mkdir(parents=True, exist_ok=True)
    return run


def work_through(
    chosen: Sequence[Step],
    torch: Any,
    settings: Settings,
    run: Run,
    file: Path,
    end: float,
    *,
    again: bool = False,
) -> list[str]:
    """Measure the steps that *run* does not have, until the moment *end*; keep *file* up to date.

    The remaining time is divided so that every step can begin.  Returns the names of the steps that
    began; it stops if one of them lost the GPU's context.
    """
    held = {outcome.name for outcome in run.outcomes if not outcome.failure}
    waiting = [step for step in chosen if again or step.name not in held]
    tried: list[str] = []
    while waiting:
        limit_s = search_s(waiting, end - monotonic())
        step = waiting.pop(0)
        if limit_s < _LEAST_S:
            say(f"{step.name}: no time left; run the same command again")
            return tried
        outcome = _measured(step, torch, settings, limit_s)
        say(_line(outcome))
        run.outcomes = [o for o in run.outcomes if o.name != step.name] + [outcome]
        write_whole(file, run.model_dump_json(indent=2))
        tried.append(step.name)
        if outcome.failure and _is_lost(torch):
            return tried
    return tried


def search_s(waiting: Sequence[Step], left_s: float) -> float:
    """Seconds that the first of *waiting* may search, if all get the same share of their limits."""
    whole = sum(step.limit_s for step in waiting)
    share = (left_s - sum(step.beside_s for step in waiting)) / whole
    return waiting[0].limit_s * min(1.0, share)


def _measured(step: Step, torch: Any, settings: Settings, limit_s: float) -> Outcome:
    outcome = Outcome(name=step.name, wanted=step.wanted)
    begin = monotonic()
    try:
        figures = step.measure(torch, settings, limit_s)
        outcome.ours_ms, outcome.peer_ms = figures.ours_s * 1e3, figures.peer_s * 1e3
        outcome.note = figures.note
    except Exception as error:  # the other steps are measured whatever happens in this one
        said = f"{type(error).__name__}: {error}"
        outcome.failure, outcome.trace = said.splitlines()[0], traceback.format_exc()
    outcome.took_s = monotonic() - begin
    return outcome


def _is_lost(torch: Any) -> bool:
    """True when this process can no longer use the GPU."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _go_on(arguments: Sequence[str], tried: Sequence[str], minutes: float) -> None:
    """Become a new process that measures the steps not yet *tried*, so that this terminates."""
    say("the GPU's context is lost: a new process measures the rest")
    sys.stdout.flush()
    os.execv(sys.executable, going_on(arguments, tried, minutes))


def going_on(arguments: Sequence[str], tried: Sequence[str], minutes: float) -> list[str]:
    """The command that measures the remaining steps, without those *tried*."""
    command = [sys.executable, "-m", "benchmarks.cuda", *arguments]
    return [*command, "--minutes", f"{max(0.0, minutes):.3f}", "--without", *tried]


def _machine(torch: Any) -> dict[str, str]:
    from cupy.cuda import runtime

    return {
        "gpu": Target.parse("cuda").features,
        "driver": str(runtime.driverGetVersion()),
        "nvrtc": nvrtc_version(),
        "torch": str(torch.__version__),
        "cudnn": str(torch.backends.cudnn.version()),
        "ansorpy": __version__,
        "python": platform.python_version(),
    }


def earlier_outcomes(held: Run, run: Run) -> list[Outcome]:
    """The results in *held*, which must be from the same GPU.

    Raises:
        ForeignFile: They are from another GPU.
    """
    if held.machine["gpu"] != run.machine["gpu"]:
        raise ForeignFile(
            f"the results are of {held.machine['gpu']}, not of {run.machine['gpu']}",
            hint="name another file with --json",
        )
    return held.outcomes


def read_run(file: Path) -> Run:
    try:
        return Run.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ForeignFile(f"{file} has no results of this benchmark: {error}") from None


def _line(outcome: Outcome) -> str:
    if outcome.ratio is None:
        return f"{outcome.name}: {outcome.failure}"
    return (
        f"{outcome.name}: {outcome.ours_ms:.4f} ms, torch {outcome.peer_ms:.4f} ms, "
        f"{outcome.ratio:.2f} ({outcome.took_s:.0f} s){outcome.note and '; ' + outcome.note}"
    )


def _print(run: Run) -> None:
    """The machine, a table of the steps, and the suite's geometric mean."""
    print(", ".join(f"{name} {value}" for name, value in run.machine.items()))
    rows = [
        (o.name, _shown(o.ours_ms), _shown(o.peer_ms), _shown(o.ratio), f"{o.wanted:.2f}",
         o.failure or o.note)
        for o in run.outcomes
    ]  # fmt: skip
    numbers = ("ours ms", "torch ms", "ratio", "wanted")
    show(Table("", ("step", *numbers, "remarks"), tuple(rows), frozenset(numbers)))
    suite = [o.ratio for o in run.outcomes if o.name.startswith("ops.") and o.ratio]
    if suite:
        mean = exp(sum(map(log, suite)) / len(suite))
        print(f"the suite: {mean:.2f}, geometric mean of {len(suite)} cases")


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}"
