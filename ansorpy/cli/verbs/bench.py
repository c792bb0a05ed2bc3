"""``ansorpy bench``: compare our latency with that of other engines, each in its own process."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import HostLookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, ModelOption, Seed

if TYPE_CHECKING:
    from ansorpy.cli.lookup import Lookup
    from ansorpy.report.bench.turns import Contender
    from ansorpy.report.profile import CallTime

__all__ = ["bench"]


@with_options
def bench(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    original: ModelOption = None,
    against: Against = None,
    seed: Seed = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Result as JSON; - for stdout.")
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also time each kernel call inside whole runs.")
    ] = False,
    **arguments: Unpack[HostLookupArguments],
) -> None:
    """Time a network against other engines, one at a time, in alternating bursts."""
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.models import with_own_sizes
    from ansorpy.cli.profiling import profile_of
    from ansorpy.config import default_threads
    from ansorpy.measure.probe.disturbance import CoreProbe
    from ansorpy.report.bench.remarks import remarks, unsettled
    from ansorpy.report.bench.result import Comparison
    from ansorpy.report.bench.turns import compare
    from ansorpy.report.profile import profile_table
    from ansorpy.report.tables import show
    from ansorpy.writable import demand_writable

    prints_json = json_file == Path("-")
    if json_file is not None and not prints_json:
        demand_writable(json_file)
    used = arguments["threads"] = arguments.get("threads") or default_threads()
    lookup = with_own_sizes(Lookup(model, **arguments), original)
    calls = profile_of(lookup, seed) if profile else []
    contenders = _contenders(lookup, original, against or [], seed)
    timings = compare(
        contenders, progress=lambda line: print(line, file=sys.stderr),
        is_disturbed=CoreProbe(used).is_disturbed,
    )  # fmt: skip
    comparison = Comparison((original or model).stem, used, timings, _kernels_ms(lookup, calls))
    result = comparison.to_dict()
    if profile:
        result["calls"] = [call.to_dict() for call in calls]
    text = json.dumps(result, indent=2)
    if prints_json:
        print(text)
        return
    show(comparison.table())
    inside_ms = sum(call.inside_s for call in calls) * 1e3 if calls else None
    ours = remarks(timings["ansorpy"].median_ms, inside_ms, comparison.kernels_ms)
    for line in (*unsettled(timings), *ours):
        print(line)
    if profile:
        show(profile_table(calls))
    if json_file is not None:
        json_file.write_text(text + "\n")


def _kernels_ms(lookup: Lookup, calls: Sequence[CallTime]) -> float | None:
    """What our kernels took alone while tuning: by the library, or by the records of *calls*."""
    from ansorpy.cli.models import is_library
    from ansorpy.runtime.library.shared_library import read_library

    if is_library(lookup.model):
        metadata = read_library(lookup.model)[0]
        return metadata.median_ms if metadata.threads == lookup.arguments.get("threads") else None
    alone = [call.alone_s for call in calls if call.alone_s is not None]
    return sum(alone) * 1e3 if calls and len(alone) == len(calls) else None


def _contenders(
    lookup: Lookup, original: Path | None, against: list[str], seed: int
) -> list[Contender]:
    """Our engine, then the others in the given order; all with the same inputs and threads."""
    from ansorpy.cli.models import given_shapes, onnx_beside
    from ansorpy.report.bench.turns import Contender

    given, shapes = lookup.arguments, given_shapes(lookup)
    ours = {"path": str(lookup.model), "seed": seed, "arguments": given}
    contenders = [Contender("ansorpy", "ansorpy.cli.engine:Ours", ours)]
    for name in dict.fromkeys(against):
        peer = {
            "name": name, "path": str(onnx_beside(lookup.model, original)), "seed": seed,
            "threads": given.get("threads"), "shapes": shapes,
            "dims": given.get("dims", {}),
        }  # fmt: skip
        contenders.append(Contender(name, "ansorpy.report.engines.protocol:open_peer", peer))
    return contenders
