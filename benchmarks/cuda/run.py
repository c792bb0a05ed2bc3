"""``python -m benchmarks.cuda``: everything that is claimed of a GPU, checked and measured there.

Four stages, each standing alone: *smoke* touches every call of the driver on tiny problems;
*correctness* compares random schedules and networks with the CPU, plants faults, and has the
memory watched; *rank* compares the closed-form model with measured times; *figures* times products,
attention, networks and the operator suite beside torch (cuBLAS, cuDNN).  The ratio is torch's time
divided by ours; above 1, we are faster.  Every file is written after every step and --db after
every trial, so a run that was stopped, or whose seconds were up, resumes where it ended.

    pip install 'ansorpy[cuda]' torch
    python -m benchmarks.cuda --stage smoke correctness=120 rank=90 figures=300 --tune-s 12
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from ansorpy import __version__
from ansorpy.cli.exit_codes import exit_code
from ansorpy.codegen.cuda.device.driver import bus_place
from ansorpy.codegen.cuda.device.nvrtc import version as nvrtc_version
from ansorpy.config import available_cores
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.target import Target
from benchmarks.common.command import command_line, say
from benchmarks.common.compared import code_version
from benchmarks.cuda.correctness import checks as correctness
from benchmarks.cuda.correctness.schedules import Schedules, check_schedules
from benchmarks.cuda.figures.base import FigureSettings, cuda_torch
from benchmarks.cuda.figures.stage import FiguresRun, is_lost, measure_all
from benchmarks.cuda.needed import missing, sentence
from benchmarks.cuda.rank import RankRun, rank_all
from benchmarks.cuda.smoke.stage import SmokeRun, check_all
from benchmarks.cuda.steps import TUNE_S, steps
from benchmarks.cuda.summary import file_of, summary

__all__ = ["LIMITS", "going_on", "main", "parser", "stages_of"]

LIMITS: Mapping[str, float] = {
    "smoke": 120.0, "correctness": 300.0, "rank": 180.0, "figures": 1500.0,
}  # fmt: skip
"""The stages in order, and the seconds of each unless the command line says otherwise."""
_CHECK_S = 120.0
"""Seconds that a check of the correctness stage may take: a network is compiled twice."""
_SCHEDULES = 0.5
"""Share of the correctness stage's time that its random schedules may take."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something failed, or had no time."""
    options = parser().parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code(lambda: _main(options, given))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    p = command_line("cuda", __doc__)
    every = ", ".join(f"{name}={limit:.0f}" for name, limit in LIMITS.items())
    p.add_argument("--stage", nargs="+", metavar="STAGE[=SECONDS]", default=list(LIMITS),
                   help=f"stages to run, and their time limits (default: {every})")  # fmt: skip
    p.add_argument("--only", nargs="+", metavar="GLOB", default=[], help="names of figures")
    p.add_argument("--without", nargs="+", metavar="STEP", default=[], help="figures to leave out")
    p.add_argument("--list", action="store_true", help="print the names of the figures and exit")
    p.add_argument("--count", type=int, default=1000, help="random schedules to compare")
    p.add_argument("--candidates", type=int, default=48, help="programs of each task to rank")
    p.add_argument("--jobs", type=int, default=min(6, available_cores()), help="checks at a time")
    p.add_argument("--tune-s", type=float, default=TUNE_S, help="seconds to search an operator")
    p.add_argument("--trials", type=int, default=32, help="programs to measure per case")
    p.add_argument("--compile-mode", default="reduce-overhead", help="mode of torch.compile")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--db", type=Path, default=Path("build/cuda.db"), help="records of the trials")
    p.add_argument("--json", type=Path, default=Path("build/cuda.json"), metavar="FILE",
                   help="figures; the other stages write beside it")  # fmt: skip
    p.add_argument("--again", action="store_true", help="do again what the files have")
    p.add_argument("--show", type=Path, metavar="FILE", help="run nothing: print what FILE has")
    return p


def stages_of(given: Sequence[str]) -> dict[str, float]:
    """The stages on the command line, in order, and the seconds of each.

    Raises:
        UsageError: There is no such stage, or its seconds are no number.
    """
    found: dict[str, float] = {}
    for text in given:
        name, _, seconds = text.partition("=")
        try:
            found[name] = float(seconds) if seconds else LIMITS[name]
        except (KeyError, ValueError):
            raise UsageError(
                f"no stage and seconds: {text!r}", hint=f"the stages are {', '.join(LIMITS)}"
            ) from None
        if name not in LIMITS:
            raise UsageError(f"no stage {name!r}", hint=f"the stages are {', '.join(LIMITS)}")
    return {name: found[name] for name in LIMITS if name in found}


def _main(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    if options.list:
        print("\n".join(step.name for step in steps(options.only)))
        return 0
    ended = True
    if options.show is None:
        chosen = stages_of(options.stage)
        lacking = [name for name in missing() if name != "torch" or "figures" in chosen]
        if lacking:
            raise MissingDependency(sentence(lacking))
        Target.parse("cuda")
        ended = all([_ended(name, options, arguments, limit) for name, limit in chosen.items()])
    lines, is_sound = summary(options.show or options.json)
    print("\n".join(lines))
    return int(not is_sound or not ended)


def _ended(
    stage: str, options: argparse.Namespace, arguments: Sequence[str], limit_s: float
) -> bool:
    """Run *stage*; whatever it meets with is printed, and the other stages are run all the same."""
    begin = monotonic()
    try:
        _STAGES[stage](options, arguments, begin + limit_s)
    except Exception:
        say(f"{stage} has ended early:\n{traceback.format_exc()}")
        return False
    say(f"{stage}: {monotonic() - begin:.0f} s")
    return True


def _smoke(options: argparse.Namespace, arguments: Sequence[str], end: float) -> None:
    """Touch every call of the driver on tiny problems."""
    file = file_of(options.json, "smoke")
    run = SmokeRun(gpu=Target.parse("cuda").features, code=code_version()).resumed(file)
    check_all(run, file, again=options.again, jobs=options.jobs, end=end)


def _correctness(options: argparse.Namespace, arguments: Sequence[str], end: float) -> None:
    """Random schedules in as many processes as there are cores, then the other checks."""
    gpu = Target.parse("cuda").features
    file = file_of(options.json, "schedules")
    if options.again:
        file.unlink(missing_ok=True)
    schedules = Schedules(gpu=gpu, code=code_version(), seed=options.seed).resumed(file)
    until_s = _SCHEDULES * (end - monotonic())
    check_schedules(schedules, file, options.count, available_cores(), until_s)
    say(schedules.line)
    file = file_of(options.json, "correctness")
    check_all(
        SmokeRun(gpu=gpu, code=code_version()).resumed(file), file, list(correctness.CHECKS),
        again=options.again, module=correctness.__name__, limit_s=_CHECK_S, jobs=options.jobs,
        end=end,
    )  # fmt: skip


def _rank(options: argparse.Namespace, arguments: Sequence[str], end: float) -> None:
    """Random programs of some tasks, as the model and the GPU rank them."""
    target, file = Target.parse("cuda"), file_of(options.json, "rank")

    def open_runner() -> GpuRunner:
        return GpuRunner([Gpu(number, bus_place(number)) for number in target.gpus()[:1]])

    run = RankRun(gpu=target.features, code=code_version()).resumed(file)
    rank_all(run, file, target, open_runner, options.candidates, end, again=options.again)


def _figures(options: argparse.Namespace, arguments: Sequence[str], end: float) -> None:
    """Times beside torch; a new process goes on if the GPU's context is lost."""
    every = steps(options.only, options.tune_s)
    chosen = [step for step in every if step.name not in options.without]
    torch = cuda_torch()
    gpu = Target.parse("cuda").features
    run = FiguresRun(
        gpu=gpu, code=code_version(), software=_software(torch), trials=options.trials
    ).resumed(options.json)
    options.db.parent.mkdir(parents=True, exist_ok=True)
    settings = FigureSettings(options.db, options.trials, options.seed, options.compile_mode)
    tried = measure_all(chosen, torch, settings, run, options.json, end, again=options.again)
    if tried and is_lost(torch):
        say("the GPU's context is lost: a new process measures the rest")
        sys.stdout.flush()
        without = [*options.without, *tried]
        os.execv(sys.executable, going_on(arguments, without, end - monotonic()))


_STAGES: Mapping[str, Callable[[argparse.Namespace, Sequence[str], float], None]] = {
    "smoke": _smoke, "correctness": _correctness, "rank": _rank, "figures": _figures,
}  # fmt: skip


def going_on(arguments: Sequence[str], without: Sequence[str], seconds: float) -> list[str]:
    """The command that measures, in *seconds*, the figures that are not in *without*."""
    command = [sys.executable, "-m", "benchmarks.cuda", *arguments]
    return [*command, "--stage", f"figures={max(0.0, seconds):.1f}", "--without", *without]


def _software(torch: Any) -> dict[str, str]:
    from cupy.cuda import runtime

    return {
        "driver": str(runtime.driverGetVersion()),
        "nvrtc": nvrtc_version(),
        "torch": str(torch.__version__),
        "cudnn": str(torch.backends.cudnn.version()),
        "ansorpy": __version__,
        "python": platform.python_version(),
    }
