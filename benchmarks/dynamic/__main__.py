"""``python -m benchmarks.dynamic``: networks whose calls have any size, measured one by one.

Parts: ``tuned`` compares our library for all sizes with libraries tuned for one size each, with as
many trials; ``peers`` with onnxruntime and openvino, which are open to all sizes, too;
``positions`` steps a decoder from its first token to its last beside onnxruntime; ``costs`` has the
sizes of libraries, the time of tuning, and what the first call at a size costs.  Each engine runs
in its own process while the others are stopped.  Results are kept in --results, libraries in
--folder, so a run that was stopped can be resumed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import available_cores
from ansorpy.evaluation.engines.names import PEERS
from benchmarks.common.command import command_line, say
from benchmarks.common.compared import this_machine
from benchmarks.common.pages import publish
from benchmarks.dynamic.libraries import LibrarySettings
from benchmarks.dynamic.measure import PARTS, Bench, Counts
from benchmarks.dynamic.report import figures_table, sizes_table
from benchmarks.dynamic.result import DynamicResult, versions
from benchmarks.dynamic.suite import FULL, TINY, DynamicModel
from benchmarks.networks.measure import Tuned, tuning_options
from benchmarks.networks.result import path_of

__all__ = ["main", "parser"]

DEFAULT = ("bert", "recogniser", "decoder")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an engine failed on a network."""
    options = parser().parse_args(arguments)
    return exit_code(lambda: _main(options))


def parser() -> argparse.ArgumentParser:
    """Build the command line parser."""
    p = command_line("dynamic", __doc__)
    p.add_argument("--only", nargs="+", choices=list(FULL), default=list(DEFAULT), help="networks")
    p.add_argument(
        "--parts", nargs="+", choices=list(PARTS),
        help="default: positions and costs of decoders, the others' tuned, peers and costs",
    )  # fmt: skip
    tuning_options(p)
    p.add_argument("--threads", type=int, default=available_cores())
    p.add_argument("--against", nargs="*", choices=PEERS, default=list(PEERS))
    p.add_argument("--tuned-sizes", type=int, default=Counts.tuned, help="sizes of part tuned")
    p.add_argument("--peer-sizes", type=int, default=Counts.peers, help="sizes of part peers")
    p.add_argument("--passes", type=int, default=Counts.passes, help="of part positions")
    p.add_argument("--tiny", action="store_true", help="tiny networks: to try the benchmark out")
    p.add_argument(
        "--folder",
        type=Path,
        help="for ONNX files and libraries, which are compiled once; default build/dynamic",
    )
    p.add_argument(
        "--results", type=Path, metavar="FOLDER",
        help="one file per network; what this machine has measured is not measured again",
    )  # fmt: skip
    p.add_argument("--again", action="store_true", help="also measure what --results has")
    p.add_argument("--json", type=Path, metavar="FILE", help="write all results into one file")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the table in a document")
    p.add_argument("--seed", type=int, default=0)
    return p


def _main(options: argparse.Namespace) -> int:
    tuned = Tuned.asked(options)
    folder = options.folder or Path("build/dynamic-tiny" if options.tiny else "build/dynamic")
    settings = LibrarySettings(folder, options.threads, tuned, options.seed)
    results = []
    for name in options.only:
        found = _measured((TINY if options.tiny else FULL)[name], settings, options)
        results.append(found)
        for title, rows in (("tuned", found.tuned), ("peers", found.peers)):
            if rows:
                say(sizes_table(f"{name}: {title}", found.dim, rows).text())
        if options.json is not None:
            networks = [result.to_dict() for result in results]
            options.json.write_text(json.dumps({"networks": networks}, indent=2) + "\n")
    publish([figures_table(results)], "benchmarks.dynamic", options.into)
    return int(any(found.failures for found in results))


def _measured(
    model: DynamicModel, settings: LibrarySettings, options: argparse.Namespace
) -> DynamicResult:
    """Add the parts that *options* name to what an earlier run has kept."""
    folder = options.results or settings.folder / "results"
    path = path_of(folder, model.name, settings.threads, settings.tuned.text, settings.seed)

    def keep(found: DynamicResult) -> None:
        found.write(path)

    found = _new(model, settings)
    if path.exists() and not options.again:
        earlier = DynamicResult.read(path, "dynamic")
        same = (earlier.machine, earlier.versions) == (found.machine, found.versions)
        if same and (earlier.low, earlier.high) == (model.low, model.high):
            found = earlier.model_copy(update={"failures": {}})
    counts = Counts(tuned=options.tuned_sizes, peers=options.peer_sizes, passes=options.passes)
    bench = Bench(model, settings, found, keep, say, counts, options.against)
    bench.compile()
    for name in options.parts or model.parts:
        PARTS[name](bench)
    return bench.found


def _new(model: DynamicModel, settings: LibrarySettings) -> DynamicResult:
    return DynamicResult(
        model=model.name,
        dim=model.dim,
        low=model.low,
        high=model.high,
        threads=settings.threads,
        effort=settings.tuned.text,
        seed=settings.seed,
        machine=this_machine(),
        date=datetime.now(UTC).date().isoformat(),
        versions=versions(),
    )


if __name__ == "__main__":
    raise SystemExit(main())
