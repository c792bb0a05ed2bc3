"""``python -m benchmarks.ops``: compare operators with onnxruntime, openvino and torch.

For each case and thread count it reports our time, the peers' times, the ratio of the best peer's
time to ours (above 1, we are faster), and our share of the roofline, whose peak and bandwidth are
measured alongside.  Every engine's result is checked in float64 before it is timed.  The last table
says what is gained if each operator takes the fastest of our and the vendors' kernels.  Records are
kept in --db, so a run that was stopped can be resumed; --json keeps results of cases not run now.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import available_cores
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import show
from benchmarks.common.command import command_line, records, say
from benchmarks.common.compared import this_machine
from benchmarks.common.pages import into
from benchmarks.ops.case import Case
from benchmarks.ops.cross import compile_all
from benchmarks.ops.measure import OperatorSettings, measure
from benchmarks.ops.providers import PEERS, installed_peers
from benchmarks.ops.report import (
    calls_table,
    cases_table,
    document,
    groups_table,
    providers_table,
    speedup_table,
)
from benchmarks.ops.result import Result, Run, read_run
from benchmarks.ops.suite import CALL, matching

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a case failed."""
    options = parser().parse_args(arguments)
    return exit_code(lambda: _main(options))


def parser() -> argparse.ArgumentParser:
    """Build the command line parser."""
    p = command_line("ops", __doc__)
    p.add_argument(
        "--only",
        nargs="+",
        metavar="GLOB",
        default=[],
        help="names or families of cases; * fits anything",
    )
    p.add_argument("--list", action="store_true", help="print the names of the cases and exit")
    p.add_argument("--trials", type=int, default=128, help="programs to measure per case")
    p.add_argument(
        "--effort", choices=("none", "full"), default="full",
        help="none: no trials; the model's best guess, or the best in --db",
    )  # fmt: skip
    p.add_argument(
        "--threads", nargs="+", type=int, default=sorted({1, available_cores()}),
        help="thread counts to measure; default: one, and all cores",
    )  # fmt: skip
    p.add_argument(
        "--against", nargs="*", choices=PEERS, default=installed_peers(),
        help="engines to compare with; default: those installed",
    )  # fmt: skip
    p.add_argument(
        "--db",
        type=Path,
        help="records of the trials; default build/ops.db, none with --effort none",
    )
    p.add_argument("--fresh", action="store_true", help="delete the records first")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--schedules", action="store_true", help="print the program of each case")
    p.add_argument("--json", type=Path, metavar="FILE", help="write or update FILE")
    p.add_argument(
        "--below", type=float, metavar="RATIO", help="only cases without such a ratio in FILE"
    )
    p.add_argument("--earlier", type=Path, metavar="FILE", help="compare our times with FILE's")
    p.add_argument("--show", type=Path, metavar="FILE", help="measure nothing: print FILE's tables")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the tables in a document")
    p.add_argument("--target", metavar="NAME", help="only compile each case, for that machine")
    return p


def _main(options: argparse.Namespace) -> int:
    chosen = matching(options.only)
    names = {case.name for case in chosen}
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if options.target is not None:
        failures = compile_all(chosen, options.target, max(options.threads), options.seed, say)
        print(f"{len(chosen) - len(failures)} of {len(chosen)} cases compile for {options.target}")
        return int(bool(failures))
    if options.show is None:
        run = _measured(options)
    else:
        run = read_run(options.show)
        run = run.model_copy(update={"results": [r for r in run.results if r.case in names]})
    _print(run, options)
    return int(any(r.failures for r in run.results))


def _measured(options: argparse.Namespace) -> Run:
    """Measure the requested cases, writing the file after each one."""
    installed = installed_peers()
    if lacking := [name for name in PEERS if name not in installed]:
        say(f"not installed, so not compared with: {', '.join(lacking)}")
    with ExitStack() as stack:
        db = records(options.db, "ops", options.effort, stack)
        if options.fresh:
            db.unlink(missing_ok=True)
        settings = OperatorSettings(
            db, options.trials, options.effort, options.seed, options.against
        )
        run = Run(
            machine=this_machine(), effort=options.effort, seed=options.seed,
            calls=_calls(options.threads, settings), results=(),
        )  # fmt: skip
        _write(run, options.json)  # refuse a file of another kind now, not after an hour
        for case, threads in _asked(options):
            result = measure(case, threads, settings, say)
            _say_result(result, options.schedules)
            run = run.model_copy(update={"results": (*run.results, result)})
            _write(run, options.json)
    return run


def _asked(options: argparse.Namespace) -> list[tuple[Case, int]]:
    """The cases and thread counts to measure."""
    asked = [(case, threads) for case in matching(options.only) for threads in options.threads]
    if options.below is None:
        return asked
    if options.json is None:
        raise UsageError("--below needs the results so far", hint="name them with --json FILE")
    ratios = {r.key: r.ratio or 0.0 for r in read_run(options.json).results}
    return [(c, n) for c, n in asked if ratios.get((c.name, n), 0.0) < options.below]


def _calls(counts: Sequence[int], settings: OperatorSettings) -> tuple[Result, ...]:
    untuned = replace(settings, effort="none")
    return tuple(measure(CALL, threads, untuned, lambda line: None) for threads in counts)


def _write(run: Run, path: Path | None) -> None:
    if path is not None:
        whole = run.onto(read_run(path)) if path.exists() else run
        path.write_text(whole.to_json())


def _print(run: Run, options: argparse.Namespace) -> None:
    if options.into is not None:
        options.into.write_text(into(options.into.read_text(), document(run), "benchmarks.ops"))
        return
    tables = (calls_table(run.calls), cases_table(run.results), groups_table(run.results),
              providers_table(run.results))  # fmt: skip
    for table in tables:
        show(table)
        print()
    if options.earlier is not None:
        show(speedup_table(run.results, read_run(options.earlier).results))


def _say_result(result: Result, with_program: bool) -> None:
    say(cases_table([result]).text())
    for engine, reason in result.failures.items():
        say(f"  {engine}: {reason}")
    if with_program:
        print(result.program, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
