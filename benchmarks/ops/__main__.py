"""``python -m benchmarks.ops``: operators beside onnxruntime, openvino and torch.

For each case and thread count: our time, the peers', and the best peer's over ours (above 1 we
win).  Every engine's result is checked in float64 before it is timed.  Records are kept in --db,
so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansorpy.config import available_cores
from ansorpy.errors import AnsorpyError
from ansorpy.report.bench.result import machine_name
from ansorpy.report.tables import show
from benchmarks.ops.measure import PEERS, Measured, Settings, installed_peers, measure
from benchmarks.ops.report import as_json, cases_table, groups_table
from benchmarks.ops.suite import matching

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; 1 when a case failed."""
    options = parser().parse_args(arguments)
    try:
        chosen = matching(options.only)
    except AnsorpyError as error:
        print(f"{error.message}; {error.hint}", file=sys.stderr)
        return error.exit_code
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    options.db.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        options.db.unlink(missing_ok=True)
    settings = Settings(
        options.db, options.trials, options.effort, options.seed, options.against
    )  # fmt: skip
    results: list[Measured] = []
    for case in chosen:
        for threads in options.threads:
            results.append(measure(case, threads, settings, _say))
            _say(cases_table(results[-1:]).text())
            _report_failures(results[-1])
            if options.schedules:
                print(results[-1].program)
            _write(results, options)
    show(cases_table(results))
    show(groups_table(results))
    return int(any(r.failures for r in results))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.ops", description=__doc__)
    p.add_argument("--only", nargs="+", metavar="GLOB", default=[], help="names or families")
    p.add_argument("--list", action="store_true", help="print the names of the cases and end")
    p.add_argument("--trials", type=int, default=128, help="programs to measure a case")
    p.add_argument("--effort", choices=("none", "full"), default="full", help="none: no trials")
    p.add_argument("--threads", nargs="+", type=int, default=sorted({1, available_cores()}))
    p.add_argument(
        "--against", nargs="*", choices=PEERS, default=installed_peers(),
        help="the peers; default: those installed",
    )  # fmt: skip
    p.add_argument("--db", type=Path, default=Path("build/ops.db"), help="records of the trials")
    p.add_argument("--fresh", action="store_true", help="forget the records first")
    p.add_argument("--schedules", action="store_true", help="print the program found for each case")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", type=Path, metavar="FILE")
    return p


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _report_failures(result: Measured) -> None:
    for engine, reason in result.failures.items():
        _say(f"  {engine}: {reason}")


def _write(results: Sequence[Measured], options: argparse.Namespace) -> None:
    if options.json is None:
        return
    data: dict[str, Any] = {
        "machine": {"cpu": machine_name(), "cores": available_cores(), "system": platform.system()},
        "trials": options.trials,
        "effort": options.effort,
        "seed": options.seed,
        "cases": as_json(results),
    }
    options.json.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
