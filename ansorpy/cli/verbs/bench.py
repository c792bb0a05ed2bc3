"""``ansorpy bench``: compare our latency with that of other engines, each in its own process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from ansorpy.api.arguments import LookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, AsJson, ModelOption, Quiet, Seed

if TYPE_CHECKING:
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.status_line import StatusLine
    from ansorpy.evaluation.bench.processes import Contender
    from ansorpy.evaluation.bench.turns import Policy
    from ansorpy.evaluation.profile import CallTime
    from ansorpy.evaluation.tables import Table

__all__ = ["bench"]


@with_options
def bench(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    original: ModelOption = None,
    against: Against = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Also write the result, as JSON."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also time each kernel inside whole runs.")
    ] = False,
    streams: Annotated[
        int,
        typer.Option("--streams", min=1, help="Callers at the same time, each with --threads."),
    ] = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **arguments: Unpack[LookupArguments],
) -> None:
    """Time a network against other engines, one at a time, in alternating bursts.

    Where --dim lists sizes, at each of these.
    """
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.models import with_known_inputs
    from ansorpy.cli.status_line import StatusLine
    from ansorpy.config import default_threads
    from ansorpy.evaluation.tables import Table, show
    from ansorpy.target import Target
    from ansorpy.writable import demand_writable

    if output is not None:
        demand_writable(output)
    peer_threads = arguments.get("threads") or default_threads()
    target = arguments.get("target") or "host"
    target = target if isinstance(target, Target) else Target.parse(target)
    arguments["threads"] = target.threads(arguments.get("threads"))
    with (
        with_known_inputs(Lookup(model, **arguments), original) as (lookup, network),
        StatusLine(quiet=quiet, as_json=as_json) as status,
    ):
        result, said = _timed(
            lookup, network, against or [], seed, status,
            profile=profile, peer_threads=peer_threads, streams=streams,
        )  # fmt: skip
    if as_json:
        print(json.dumps({"event": "result", **result}))
    else:
        for part in said:
            show(part) if isinstance(part, Table) else print(part)
    if output is not None:
        output.write_text(json.dumps(result, indent=2) + "\n")


Said = list["Table | str"]
"""What is printed."""


def _timed(
    lookup: Lookup, original: Path | None, against: Sequence[str], seed: int, status: StatusLine,
    *, profile: bool, peer_threads: int, streams: int,
) -> tuple[dict[str, Any], Said]:  # fmt: skip
    """The result as JSON and as what is printed."""
    from ansorpy.cli.profiling import profiles_of
    from ansorpy.cli.sizes import timed_sizes
    from ansorpy.evaluation.bench.turns import Policy

    opened, points, sizes = timed_sizes(lookup, original)
    profiles = profiles_of(opened, sizes, seed) if profile else []
    told, policy = {"threads": peer_threads}, Policy(streams=streams)
    if len(points) == 1:
        shapes = {"seed": seed, "shapes": sizes[0]}
        contenders = [_ours(opened, "Ours", shapes)]
        contenders += _peers(opened, original, against, "open_peer", shapes | told)
        calls = profiles[0] if profiles else ()
        return _at_one_size(opened, contenders, original, calls, policy, status)
    all_shapes = {"seed": seed, "sizes": sizes}
    contenders = [_ours(opened, "ours_at", all_shapes)]
    contenders += _peers(opened, original, against, "open_peer_at", all_shapes | told)
    return _at_sizes(opened, contenders, original, points, profiles, policy, status)


def _at_one_size(
    lookup: Lookup, contenders: Sequence[Contender], original: Path | None,
    calls: Sequence[CallTime], policy: Policy, status: StatusLine,
) -> tuple[dict[str, Any], Said]:  # fmt: skip
    from ansorpy.evaluation.bench.remarks import account, unsettled
    from ansorpy.evaluation.bench.result import Comparison
    from ansorpy.evaluation.bench.turns import compare
    from ansorpy.evaluation.profile import bounds_table, profile_table
    from ansorpy.measure.probe.disturbance import CoreProbe

    threads = lookup.arguments["threads"] or 1
    disturbed = CoreProbe(threads).is_disturbed
    timings = compare(contenders, policy=policy, progress=status, is_disturbed=disturbed)
    name = (original or lookup.model).stem
    comparison = Comparison(name, threads, timings, _kernels_ms(lookup, calls), policy.streams)
    result = comparison.to_dict()
    inside_ms = sum(call.seconds for call in calls) * 1e3 if calls else None
    ours = account(timings["ansorpy"].median_ms, inside_ms, comparison.kernels_ms)
    said: Said = [comparison.table(), comparison.bars(), comparison.precisions()]
    said += unsettled(timings)
    said += ["", ours] if ours is not None and policy.streams == 1 else []
    if calls:
        result["calls"] = [call.to_dict() for call in calls]
        said += ["", profile_table(calls), "", bounds_table(calls)]
    return result, said


def _at_sizes(
    lookup: Lookup, contenders: Sequence[Contender], original: Path | None,
    points: Sequence[Mapping[str, int]], profiles: Sequence[Sequence[CallTime]], policy: Policy,
    status: StatusLine,
) -> tuple[dict[str, Any], Said]:  # fmt: skip
    from ansorpy.evaluation.bench.remarks import unsettled
    from ansorpy.evaluation.bench.result import SizesComparison
    from ansorpy.evaluation.bench.turns import compare_sizes
    from ansorpy.evaluation.profile import bounds_table, profile_table
    from ansorpy.measure.probe.disturbance import CoreProbe

    threads = lookup.arguments["threads"] or 1
    timings = [*compare_sizes(
        contenders, dict(enumerate(map(_named, points))), policy=policy, progress=status,
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
