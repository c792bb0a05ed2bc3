"""``python -m benchmarks.networks``: compare whole networks with onnxruntime and openvino.

For each network and thread count it reports our time, the peers' times, the ratio of the faster
peer's time to ours (above 1, we are faster), and the roofline: the time of the kernels' arithmetic
and data at the measured peak and bandwidth.  Outputs are first checked against onnxruntime.  Every
result is kept in
--results and every trial in --db, so a run that was stopped can be resumed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import available_cores
from ansorpy.evaluation.engines.names import PEERS
from benchmarks.common.cells import OURS
from benchmarks.common.command import command_line, records, say
from benchmarks.common.compared import code_version, this_machine
from benchmarks.common.pages import publish
from benchmarks.networks.measure import NetworkSettings, Tuned, measure, tuning_options
from benchmarks.networks.report import means_table, networks_table
from benchmarks.networks.result import NetworkResult, kept, path_of
from benchmarks.zoo.suite import ALL, Entry

__all__ = ["main", "parser"]

ONE_THREAD_S = 120.0
"""Seconds of tuning for one thread, which starts from the records for all threads."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an engine failed on a network."""
    options = parser().parse_args(arguments)
    return exit_code(lambda: _main(options))


def parser() -> argparse.ArgumentParser:
    """Build the command line parser."""
    p = command_line("networks", __doc__)
    p.add_argument(
        "names", nargs="*", metavar="NAME",
        help=f"some of {', '.join(ALL)}, or .onnx files; default: all of these",
    )  # fmt: skip
    p.add_argument("--batch", type=int, default=1, help="batch of names without one (NAME.b16)")
    tuning_options(p)
    p.add_argument("--threads", type=int, default=available_cores())
    p.add_argument(
        "--one-thread", action="store_true",
        help="then also with one thread, tuned for two minutes from the records so far",
    )  # fmt: skip
    p.add_argument("--against", nargs="*", choices=PEERS, default=list(PEERS))
    p.add_argument("--db", type=Path, help="records; default build/networks.db")
    p.add_argument("--folder", type=Path, default=Path("build/networks"), help="for ONNX files")
    p.add_argument(
        "--results", type=Path, default=Path("build/networks/results"), metavar="FOLDER",
        help="one file per result; complete results of this machine and code are kept",
    )  # fmt: skip
    p.add_argument("--again", action="store_true", help="also measure what --results has")
    p.add_argument("--json", type=Path, metavar="FILE", help="write all results into one file")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the tables in a document")
    p.add_argument("--list", action="store_true", help="print the names and exit")
    p.add_argument("--seed", type=int, default=0)
    return p


def _main(options: argparse.Namespace) -> int:
    if options.list:
        print("\n".join(ALL))
        return 0
    results: list[NetworkResult] = []
    with ExitStack() as stack:
        db = records(options.db, "networks", options.effort, stack)
        settings = NetworkSettings(db, options.folder, options.seed, options.against)
        wanted = (OURS, *options.against)
        for entry, threads, tuned, effort in _asked(options):
            path = path_of(options.results, entry.label, threads, effort, options.seed)
            found = None if options.again else kept(path, this_machine(), wanted, code_version())
            if found is not None:
                say(f"{entry.label}: kept in {path} (--again measures it)")
            else:
                found = measure(entry, threads, tuned, settings, say, effort)
                found.write(path)
            _say_result(found)
            results.append(found)
            _write(results, options.json)
    tables = [networks_table(results), means_table(results)]
    publish(tables, "benchmarks.networks", options.into)
    return int(any(r.failures for r in results))


def _asked(options: argparse.Namespace) -> Iterator[tuple[Entry, int, Tuned, str]]:
    """Networks, thread counts, how long to tune each, and the description of that for the table."""
    tuned = Tuned.asked(options)
    for name in options.names or ALL:
        entry = Entry.parse(name, options.batch if options.names else 1)
        yield entry, options.threads, tuned, tuned.text
        if options.one_thread and options.threads > 1:
            if tuned == Tuned("none"):
                yield entry, 1, tuned, tuned.text
            else:
                again = Tuned(time_limit_s=ONE_THREAD_S)
                yield entry, 1, again, f"{tuned.text} + {again.text}"


def _write(results: Sequence[NetworkResult], path: Path | None) -> None:
    if path is not None:
        rows = [{**r.model_dump(), "ratio": r.ratio, "share": r.share} for r in results]
        path.write_text(json.dumps({"networks": rows}, indent=2) + "\n")


def _say_result(result: NetworkResult) -> None:
    say(networks_table([result]).text())
    for engine, reason in result.failures.items():
        say(f"  {engine}: {reason}")


if __name__ == "__main__":
    raise SystemExit(main())
