"""Other engines' times of a network that is about to be tuned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.api.arguments import CompileArguments, LookupArguments
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import with_known_inputs
from ansorpy.api.events import PeerTimed
from ansorpy.cli.status_line import StatusLine
from ansorpy.config import default_threads
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.turns import Policy, compare
from ansorpy.evaluation.onnx_inputs import input_specs, read_model
from ansorpy.options import those
from ansorpy.size_bounds import written_bounds
from ansorpy.size_ranges import SizeRange

__all__ = ["peers_timed"]

_POLICY = Policy(rounds=(4, 8))
"""Fewer bursts than ``bench`` makes: the search should begin soon."""


def peers_timed(
    model: Path, arguments: CompileArguments, against: Sequence[str], *, quiet: bool = False
) -> list[PeerTimed]:
    """The time of the network *model* in each of the engines *against*.

    Raises:
        UsageError: The network is to be compiled for a range of sizes, or there is no such engine.
        MissingDependency: An engine is not installed.
    """
    if not against:
        return []
    dims, shapes = arguments.get("dims") or {}, arguments.get("shapes") or {}
    ranges = [size for size in dims.values() if isinstance(size, SizeRange)]
    ranges += [size for shape in shapes.values() for size in shape if isinstance(size, SizeRange)]
    if ranges:
        raise UsageError(
            f"other engines cannot be timed at all sizes of {ranges[0]}",
            hint="leave --against out here, and give it to bench",
        )
    threads = arguments.get("threads") or default_threads()
    bounds = arguments.get("bounds")
    asked = Lookup(model, **those(LookupArguments, arguments))
    with with_known_inputs(asked, None) as (known, _), StatusLine(quiet=quiet) as status:
        specs = input_specs(read_model(known.model), shapes, dims, bounds)
        given = {
            "path": str(known.model), "threads": threads,
            "shapes": {s.name: s.shape for s in specs}, "bounds": written_bounds(bounds),
        }  # fmt: skip
        engine = "ansorpy.evaluation.engines.protocol:open_peer"
        contenders = [
            Contender(name, engine, {"name": name, **given}) for name in dict.fromkeys(against)
        ]
        timings = compare(contenders, _POLICY, progress=status)
    return [PeerTimed(name, timing.median_ms * 1e-3) for name, timing in timings.items()]
