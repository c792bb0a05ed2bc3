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
from ansorpy.evaluation.engines.names import demand_engines
from ansorpy.evaluation.onnx_inputs import input_specs, read_model, tensor_shapes
from ansorpy.options import those
from ansorpy.size_bounds import written_bounds

__all__ = ["peers_timed"]

_POLICY = Policy(rounds=(4, 8))
"""Fewer bursts than ``bench`` makes: the search should begin soon."""


def peers_timed(
    model: Path, arguments: CompileArguments, against: Sequence[str], *, quiet: bool = False
) -> list[PeerTimed]:
    """The time of the network *model* in each of the engines *against*.

    Raises:
        UsageError: The network has a range of sizes, or there is no such engine.
        MissingDependency: An engine is not installed.
    """
    demand_engines(against)
    if not against:
        return []
    dims, shapes = arguments.get("dims"), arguments.get("shapes")
    threads = arguments.get("threads") or default_threads()
    bounds = arguments.get("bounds")
    asked = Lookup(model, **those(LookupArguments, arguments))
    with with_known_inputs(asked, None) as (known, _), StatusLine(quiet=quiet) as status:
        network = read_model(known.model)
        ranges = tensor_shapes(network, shapes, dims, bounds).ranges
        if ranges:
            said = ", ".join(f"{dim.name}={sizes}" for dim, sizes in ranges.items())
            raise UsageError(
                f"other engines cannot be timed at all sizes of {said}",
                hint="give each one size, or leave --against out here, and give it to bench",
            )
        specs = input_specs(network, shapes, dims, bounds)
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
