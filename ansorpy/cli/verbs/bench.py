"""``ansorpy bench``: compare our latency with that of other engines, each in its own process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from ansorpy.api.arguments import LookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, ModelOption, Plugins, Seed

if TYPE_CHECKING:
    from ansorpy.cli.lookup import Lookup
    from ansorpy.evaluation.bench.processes import Contender
    from ansorpy.evaluation.profile import CallTime
    from ansorpy.evaluation.tables import Table

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
    plugin: Plugins = None,
    **arguments: Unpack[LookupArguments],
) -> None:
    """Time a network against other engines, one at a time, in alternating bursts.

    Where --dim lists sizes, at each of these.
    """
    from ansorpy.api.parts import load_plugins
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.models import with_known_inputs
    from ansorpy.config import default_threads
    from ansorpy.evaluation.tables import Table, show
    from ansorpy.target import Target
    from ansorpy.writable import demand_writable

    load_plugins(plugin or ())
    prints_json = json_file == Path("-")
    if json_file is not None and not prints_json:
        demand_writable(json_file)
    peer_threads = arguments.get("threads") or default_threads()
    target = arguments.get("target") or "host"
    target = target if isinstance(target, Target) else Target.parse(target)
    arguments["threads"] = target.threads(arguments.get("threads"))
    with with_known_inputs(Lookup(model, **arguments), original) as (lookup, network):
        given = {"seed": seed, "plugins": list(map(str, plugin or ()))}
        result, said = _timed(lookup, network, against or [], given, profile, peer_threads)
    text = json.dumps(result, indent=2)
    if prints_json:
        print(text)
        return
    for part in said:
        show(part) if isinstance(part, Table) else print(part)
    if json_file is not None:
        json_file.write_text(text + "\n")


Said = list["Table | str"]
"""What is printed."""


def _timed(
    lookup: Lookup, original: Path | None, against: Sequence[str], given: Mapping[str, Any],
    profile: bool, peer_threads: int,
) -> tuple[dict[str, Any], Said]:  # fmt: skip
    """The result as JSON and as what is printed.

    Args:
        given: The seed of the inputs, and what our engine loads first.
    """
    from ansorpy.cli.profiling import profiles_of
    from ansorpy.cli.sizes import timed_sizes

    seed = given["seed"]
    opened, points, sizes = timed_sizes(lookup, original)
    profiles = profiles_of(opened, sizes, seed) if profile else []
    told = {"threads": peer_threads, "seed": seed}
    if len(points) == 1:
        shapes = {"shapes": sizes[0]}
        contenders = [_ours(opened, "Ours", {**given, **shapes})]
        contenders += _peers(opened, original, against, "open_peer", shapes | told)
        return _at_one_size(opened, contenders, original, profiles[0] if profiles else ())
    all_shapes = {"sizes": sizes}
    contenders = [_ours(opened, "ours_at", {**given, **all_shapes})]
    contenders += _peers(opened, original, against, "open_peer_at", all_shapes | told)
    return _at_sizes(opened, contenders, original, points, profiles)


def _at_one_size(
    lookup: Lookup, contenders: Sequence[Contender], original: Path | None,
    calls: Sequence[CallTime],
) -> tuple[dict[str, Any], Said]:  # fmt: skip
    from ansorpy.evaluation.bench.remarks import remarks, unsettled
    from ansorpy.evaluation.bench.result import Comparison
    from ansorpy.evaluation.bench.turns import compare
    from ansorpy.evaluation.profile import bounds_table, profile_table
    from ansorpy.measure.probe.disturbance import CoreProbe

    threads = lookup.arguments["threads"] or 1
    timings = compare(contenders, progress=_progress, is_disturbed=CoreProbe(threads).is_disturbed)
    name = (original or lookup.model).stem
    comparison = Comparison(name, threads, timings, _kernels_ms(lookup, calls))
    result = comparison.to_dict()
    inside_ms = sum(call.seconds for call in calls) * 1e3 if calls else None
    ours = remarks(timings["ansorpy"].median_ms, inside_ms, comparison.kernels_ms)
    said: Said = [comparison.table(), *unsettled(timings), *ours]
    if calls:
        result["calls"] = [call.to_dict() for call in calls]
        said += [profile_table(calls), bounds_table(calls)]
    return result, said


def _at_sizes(
    lookup: Lookup, contenders: Sequence[Contender], original: Path | None,
    points: Sequence[Mapping[str, int]], profiles: Sequence[Sequence[CallTime]],
) -> tuple[dict[str, Any], Said]:  # fmt: skip
    from ansorpy.evaluation.bench.remarks import unsettled
    from ansorpy.evaluation.bench.result import SizesComparison
    from ansorpy.evaluation.bench.turns import compare_sizes
    from ansorpy.evaluation.profile import bounds_table, profile_table
    from ansorpy.measure.probe.disturbance import CoreProbe

    threads = lookup.arguments["threads"] or 1
    timings = [*compare_sizes(
        contenders, dict(enumerate(map(_named, points))), progress=_progress,
        is_disturbed=CoreProbe(threads).is_disturbed,
    )]  # fmt: skip
    comparison = SizesComparison((original or lookup.model).stem, threads, points, timings)
    unsteady = [
        f"{_named(point)}: {line}"
        for point, timing in zip(points, timings, strict=True) for line in unsettled(timing)
    ]  # fmt: skip
    result = comparison.to_dict()
    said: Said = [comparison.table(), comparison.plot(), *unsteady]
    for point, row, calls in zip(points, result["sizes"], profiles, strict=False):
        row["calls"] = [call.to_dict() for call in calls]
        said += [profile_table(calls, _named(point)), bounds_table(calls)]
    return result, said


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


def _ours(lookup: Lookup, factory: str, given: Mapping[str, object]) -> Contender:
    """Our engine, made by a *factory* of :mod:`ansorpy.cli.engine`."""
    from ansorpy.cli.engine import sendable
    from ansorpy.evaluation.bench.processes import Contender

    ours = {"path": str(lookup.model), "arguments": sendable(lookup.arguments), **given}
    return Contender("ansorpy", f"ansorpy.cli.engine:{factory}", ours)


def _peers(
    lookup: Lookup, original: Path | None, against: Sequence[str], factory: str,
    given: Mapping[str, object],
) -> Iterator[Contender]:  # fmt: skip
    """The others in the given order, made by a *factory* of the engines' protocol."""
    from ansorpy.cli.models import onnx_beside
    from ansorpy.evaluation.bench.processes import Contender

    for name in dict.fromkeys(against):
        peer = {"name": name, "path": str(onnx_beside(lookup.model, original)), **given}
        yield Contender(name, f"ansorpy.evaluation.engines.protocol:{factory}", peer)
