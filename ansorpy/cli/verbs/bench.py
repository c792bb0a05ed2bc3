"""``ansorpy bench``: compare our latency with that of other engines, each in its own process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from ansorpy.api.arguments import TimedArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, ModelOption, Seed

if TYPE_CHECKING:
    from ansorpy.cli.lookup import Lookup
    from ansorpy.report.bench.processes import Contender
    from ansorpy.report.profile import CallTime
    from ansorpy.report.tables import Table

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
    dim: Annotated[
        list[str] | None,
        typer.Option(
            "--dim", metavar="NAME=N[,N...]",
            help="Size of a dimension by name; of several, each is timed.",
        ),
    ] = None,
    **arguments: Unpack[TimedArguments],
) -> None:  # fmt: skip
    """Time a network against other engines, one at a time, in alternating bursts."""
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.sizes import listed_sizes, points_of
    from ansorpy.config import default_threads
    from ansorpy.report.tables import Table, show
    from ansorpy.writable import demand_writable

    prints_json = json_file == Path("-")
    if json_file is not None and not prints_json:
        demand_writable(json_file)
    arguments["threads"] = arguments.get("threads") or default_threads()
    points = points_of(listed_sizes(dim or ()))
    lookups = [Lookup(model, dims=point, **arguments) for point in points]
    if len(lookups) == 1:
        result, said = _at_one_size(lookups[0], original, against or [], seed, profile)
    else:
        result, said = _at_sizes(lookups, original, against or [], seed, profile)
    text = json.dumps(result, indent=2)
    if prints_json:
        print(text)
        return
    for part in said:
        show(part) if isinstance(part, Table) else print(part)
    if json_file is not None:
        json_file.write_text(text + "\n")


def _at_one_size(
    lookup: Lookup, original: Path | None, against: Sequence[str], seed: int, profile: bool
) -> tuple[dict[str, Any], list[Table | str]]:
    """The result as JSON and as what is printed."""
    from ansorpy.cli.models import given_shapes, with_own_sizes
    from ansorpy.cli.profiling import profile_of
    from ansorpy.measure.probe.disturbance import CoreProbe
    from ansorpy.report.bench.remarks import remarks, unsettled
    from ansorpy.report.bench.result import Comparison
    from ansorpy.report.bench.turns import compare
    from ansorpy.report.profile import profile_table

    threads, shapes = lookup.arguments["threads"] or 1, given_shapes(lookup)
    lookup = with_own_sizes(lookup, original)
    calls = profile_of(lookup, seed) if profile else []
    sizes = {"shapes": shapes, "dims": lookup.arguments.get("dims", {})}
    peers = _peers(lookup, original, against, "open_peer", {"seed": seed, **sizes})
    contenders = [_ours(lookup, "Ours", seed, shapes=shapes), *peers]
    timings = compare(contenders, progress=_progress, is_disturbed=CoreProbe(threads).is_disturbed)
    name = (original or lookup.model).stem
    comparison = Comparison(name, threads, timings, _kernels_ms(lookup, calls))
    result = comparison.to_dict()
    inside_ms = sum(call.inside_s for call in calls) * 1e3 if calls else None
    ours = remarks(timings["ansorpy"].median_ms, inside_ms, comparison.kernels_ms)
    said: list[Table | str] = [comparison.table(), *unsettled(timings), *ours]
    if profile:
        result["calls"] = [call.to_dict() for call in calls]
        said.append(profile_table(calls))
    return result, said


def _at_sizes(
    lookups: Sequence[Lookup], original: Path | None, against: Sequence[str], seed: int,
    profile: bool,
) -> tuple[dict[str, Any], list[Table | str]]:  # fmt: skip
    """The same for each of several sizes; every engine is opened once, for all of them."""
    from ansorpy.cli.models import given_shapes, is_library, with_own_sizes
    from ansorpy.errors import UsageError
    from ansorpy.measure.probe.disturbance import CoreProbe
    from ansorpy.report.bench.remarks import unsettled
    from ansorpy.report.bench.result import SizesComparison
    from ansorpy.report.bench.turns import compare_sizes

    model, points = lookups[0].model, [lookup.arguments["dims"] or {} for lookup in lookups]
    if not is_library(model):
        raise UsageError(
            f"{model} is no library, and only a library runs several sizes",
            hint="compile it for all of them first, or give each dimension one size",
        )
    if profile:
        raise UsageError(
            "the calls of several sizes cannot be profiled", hint="give each dimension one size"
        )
    sizes = [given_shapes(lookup) for lookup in lookups]
    lookup = [with_own_sizes(lookup, original) for lookup in lookups][0]
    threads = lookup.arguments["threads"] or 1
    peers = _peers(lookup, original, against, "open_peer_at", {"seed": seed, "sizes": sizes})
    contenders = [_ours(lookup, "ours_at", seed, sizes=sizes), *peers]
    names = dict(enumerate(map(_named, points)))
    timings = [*compare_sizes(
        contenders, names, progress=_progress, is_disturbed=CoreProbe(threads).is_disturbed
    )]  # fmt: skip
    comparison = SizesComparison((original or model).stem, threads, points, timings)
    open_ends = [
        f"{_named(point)}: {line}"
        for point, timing in zip(points, timings, strict=True) for line in unsettled(timing)
    ]  # fmt: skip
    return comparison.to_dict(), [comparison.table(), comparison.plot(), *open_ends]


def _named(point: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in point.items())


def _progress(line: str) -> None:
    print(line, file=sys.stderr)


def _kernels_ms(lookup: Lookup, calls: Sequence[CallTime]) -> float | None:
    """What our kernels took alone while tuning: by the library, or by the records of *calls*."""
    from ansorpy.cli.models import is_library
    from ansorpy.runtime.library.shared_library import read_library

    if is_library(lookup.model):
        metadata = read_library(lookup.model)[0]
        return metadata.median_ms if metadata.threads == lookup.arguments.get("threads") else None
    alone = [call.alone_s for call in calls if call.alone_s is not None]
    return sum(alone) * 1e3 if calls and len(alone) == len(calls) else None


def _ours(lookup: Lookup, factory: str, seed: int, **sizes: object) -> Contender:
    """Our engine, made by a *factory* of :mod:`ansorpy.cli.engine`."""
    from ansorpy.report.bench.processes import Contender

    ours = {"path": str(lookup.model), "seed": seed, "arguments": lookup.arguments, **sizes}
    return Contender("ansorpy", f"ansorpy.cli.engine:{factory}", ours)


def _peers(
    lookup: Lookup, original: Path | None, against: Sequence[str], factory: str,
    given: Mapping[str, object],
) -> Iterator[Contender]:  # fmt: skip
    """The others in the given order, made by a *factory* of the engines' protocol."""
    from ansorpy.cli.models import onnx_beside
    from ansorpy.report.bench.processes import Contender

    for name in dict.fromkeys(against):
        path, threads = str(onnx_beside(lookup.model, original)), lookup.arguments.get("threads")
        peer = {"name": name, "path": path, "threads": threads, **given}
        yield Contender(name, f"ansorpy.report.engines.protocol:{factory}", peer)
