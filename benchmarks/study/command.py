"""The command line of a study: carry out stages in slices, write the page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import available_cores
from ansorpy.errors import UsageError
from ansorpy.quantities import seconds_of
from benchmarks.common.command import command_line, say
from benchmarks.spaces.catalogue import FOLDER
from benchmarks.study.jobs import carry_out
from benchmarks.study.outcomes import Conditions, Outcomes
from benchmarks.study.study import Study, StudySettings, pages

__all__ = ["REPORT", "run_study"]

REPORT = "report"

Written = Callable[[StudySettings, Outcomes], None]


def run_study(study: Study, arguments: Sequence[str] | None, also: Written | None = None) -> int:
    """Run the command line of *study*; *also* writes what depends on outcomes besides the page."""
    options = _parser(study).parse_args(arguments)
    return exit_code(lambda: _run(study, options, also))


def _run(study: Study, options: argparse.Namespace, also: Written | None) -> int:
    path = options.outcomes or options.folder / "outcomes.jsonl"
    outcomes = Outcomes(path, Conditions.today(), options.code)
    settings = _settings(options)
    names = options.stage or [stage.name for stage in study.stages]
    jobs = [j for stage in study.stages if stage.name in names for j in stage.jobs(settings)]
    jobs = list({job.key: job for job in jobs}.values())
    if options.list:
        for job in jobs:
            print(f"{job.key}{'  done' if job.key in outcomes else ''}")
        return 0
    if not jobs and names != [REPORT]:
        raise UsageError(
            "these stages have no job on that", hint="--list without --on prints all jobs"
        )
    if options.again:
        outcomes.forget(job.key for job in jobs)
    if jobs:
        left = carry_out(jobs, outcomes, seconds_of(options.budget), options.jobs, say)
        say(f"{left} jobs are left: the same command continues" if left else "all jobs are done")
    if REPORT in names:
        _write(study, settings, outcomes, also)
        return 0
    for stage in study.stages:
        if stage.name in names and (section := stage.section(settings, outcomes)).text:
            print(f"{stage.title}\n\n{section.text}\n\n{section.tables}\n")
    return 0


def _write(study: Study, settings: StudySettings, outcomes: Outcomes, also: Written | None) -> None:
    written = pages(study, settings, outcomes)
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for picture in study.pictures.glob(f"{study.name}_*.svg"):
        if picture.name not in written[study.page]:
            picture.unlink()
    if also is not None:
        also(settings, outcomes)
    say(f"wrote {study.page}")
    for other in sorted(outcomes.others, key=lambda one: (one.code, one.machine)):
        say(f"it leaves out outcomes of {other.code} (--code) on {other.machine}")


def _settings(options: argparse.Namespace) -> StudySettings:
    return StudySettings(
        only=tuple(options.only), on=tuple(options.on), seeds=options.seeds,
        seconds=options.seconds, network_seconds=options.network_seconds, trials=options.trials,
        threads=options.threads, folder=options.folder, spaces=options.spaces,
    )  # fmt: skip


def _parser(study: Study) -> argparse.ArgumentParser:
    stages = "\n".join(f"  {stage.name:13}{stage.help}" for stage in study.stages)
    about = f"{study.about}\n\nstages:\n{stages}\n  {REPORT:13}Write {study.page.name}."
    p = command_line(study.name, about)
    names = [*(stage.name for stage in study.stages), REPORT]
    p.add_argument("--stage", nargs="+", choices=names, metavar="NAME", help="default: all, "
                   "without the report")  # fmt: skip
    p.add_argument("--budget", default="1h", metavar="TIME", help="then stop; default 1h")
    p.add_argument("--only", nargs="+", default=[], metavar="NAME",
                   help="parts, or STRATEGY:SELECTOR:COST_MODEL:SCHEDULER")  # fmt: skip
    p.add_argument("--on", nargs="+", default=[], metavar="NAME",
                   help="spaces, operators or networks")  # fmt: skip
    p.add_argument("--seeds", type=int, help="searches of each contestant on each subject")
    p.add_argument("--seconds", type=float, help="of tuning an operator")
    p.add_argument("--network-seconds", type=float, help="of tuning a network")
    p.add_argument("--trials", type=int, help="of tuning where trials limit it")
    p.add_argument("--threads", type=int, default=available_cores(), help="of the programs")
    p.add_argument("--jobs", type=int, default=available_cores(),
                   help="processes for what times nothing; default: cores")  # fmt: skip
    p.add_argument("--list", action="store_true", help="print the jobs and exit")
    p.add_argument("--again", action="store_true", help="also run jobs that have an outcome")
    p.add_argument("--code", nargs="+", default=[], metavar="VERSION", help="count the outcomes of "
                   "earlier versions of the code, too, the first before the others")  # fmt: skip
    p.add_argument("--folder", type=Path, default=Path("build") / study.name, help="for outcomes, "
                   "records and networks")  # fmt: skip
    p.add_argument("--outcomes", type=Path, metavar="FILE", help="default: outcomes.jsonl there")
    p.add_argument("--spaces", type=Path, default=FOLDER, help="folder of recorded spaces")
    return p
