"""``ansorpy tune``: search and keep the records, for a later ``compile`` or ``export``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ansorpy.api.arguments import (
    CompileArguments,
    LookupArguments,
    NetworkArguments,
    SearchArguments,
)
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import (
    AsJson,
    Baseline,
    LatencyBound,
    ModelFiles,
    NetworkWeight,
    Plugins,
    Quiet,
    Verbose,
)
from ansorpy.errors import ForeignFile
from ansorpy.options import those
from ansorpy.quantities import latency_text, ms_of

if TYPE_CHECKING:
    from ansorpy.api.display.board import Board
    from ansorpy.api.networks import Finished
    from ansorpy.api.request import Request

__all__ = ["tune"]


@with_options
def tune(
    models: ModelFiles,
    *,
    latency_bound: LatencyBound = None,
    baseline: Baseline = None,
    weight: NetworkWeight = None,
    plugin: Plugins = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    **arguments: Unpack[CompileArguments],
) -> None:
    """Tune the tasks of networks and keep the records; no library is written."""
    from ansorpy.api.display.text import comparisons
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.networks import NetworkSpec, open_networks, tune_networks
    from ansorpy.api.request import Request
    from ansorpy.cli.next_command import export_command
    from ansorpy.cli.progress import Talk
    from ansorpy.cli.searching import accounted, followed
    from ansorpy.cli.values import latencies_by_network, network_names, weights_by_network

    load_plugins(plugin or ())
    request = Request.of(**those(SearchArguments, arguments))
    _demand_kept(request.db)
    names = network_names(models)
    bounds = latencies_by_network("--latency-bound", latency_bound or (), names)
    baselines = latencies_by_network("--baseline", baseline or (), names)
    weights = weights_by_network("--weight", weight or (), names)
    shared = those(NetworkArguments, arguments)
    specs = [
        NetworkSpec(
            model, weights.get(name, 1.0), bounds.get(name), baselines.get(name), name=name,
            **shared,
        )
        for model, name in zip(models, names, strict=True)
    ]  # fmt: skip
    talk = Talk(quiet, verbose, as_json)
    known = those(LookupArguments, arguments)
    lookups = [Lookup(model, plugins=plugin or (), **known) for model in models]
    memory, named = shared.get("memory"), zip(lookups, names, strict=True)
    exports = [export_command(one, _library(name, request), memory=memory) for one, name in named]
    with accounted(request, talk):
        networks = open_networks(specs, request)
        with followed(request, talk, exports) as (following, board):
            finished = tune_networks(networks, following)
    found = [_found(*each) for each in zip(finished, exports, strict=True)]
    if as_json:
        print(json.dumps(_result(found, request.db, board)))
        return
    compared = "".join(f", {part}" for part in comparisons(board))
    measured, every = sum(bool(row.trials) for row in board.rows.values()), len(networks.tasks)
    some = "" if measured == every else f"{measured} of "
    print(f"tuned {some}{every} tasks{compared}; records in {request.db}")
    for one in found:
        ms = one["kernels_ms"]
        time = "not timed" if ms is None else f"{latency_text(ms * 1e-3)} in kernels"
        print(f"{one['name']}: {time}\nnext: {one['export']}")


def _demand_kept(database: Path) -> None:
    """Raise :class:`ForeignFile` if *database* exists but nothing can be added to it."""
    from ansorpy.measure.records.schema import is_read_only

    if is_read_only(database):
        raise ForeignFile(
            f"{database} cannot be written: nothing that is measured would be kept",
            hint="name another file with --db",
        )


def _library(name: str, request: Request) -> Path:
    """The library, in this folder, of the network called *name*."""
    from ansorpy.api.emitted import default_form

    suffix = default_form(request.target).suffix
    return Path(f"{name.replace(os.sep, '-').lstrip('.-')}{suffix}")


def _found(finished: Finished, export: str) -> dict[str, Any]:
    """The time of the kernels, and the command that exports the same tasks."""
    from ansorpy.api.assemble import kernels_median_s

    return {
        "name": finished.project.name,
        "kernels_ms": ms_of(kernels_median_s(finished.project, finished.chosen)),
        "export": export,
    }


def _result(found: Sequence[dict[str, Any]], database: Path, board: Board) -> dict[str, Any]:
    """The last event with ``--json``."""
    return {
        "event": "result",
        "networks": list(found),
        "untuned_ms": ms_of(board.untuned_s),
        "trials": board.got,
        "records": str(database),
    }
