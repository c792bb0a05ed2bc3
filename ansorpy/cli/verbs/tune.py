"""``ansorpy tune``: search and keep the records, for a later ``compile`` or ``export``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ansorpy.api.arguments import (
    CompileArguments,
    LookupArguments,
    NetworkArguments,
    SearchArguments,
)
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Baseline, LatencyBound, ModelFiles, NetworkWeight, Plugins
from ansorpy.options import those

if TYPE_CHECKING:
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.networks import Finished

__all__ = ["tune"]


@with_options
def tune(
    models: ModelFiles,
    latency_bound: LatencyBound = None,
    baseline: Baseline = None,
    weight: NetworkWeight = None,
    plugin: Plugins = None,
    **arguments: Unpack[CompileArguments],
) -> None:
    """Tune the tasks of networks and keep the records; no library is written."""
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.networks import NetworkSpec, open_networks, tune_networks
    from ansorpy.api.parts import load_plugins
    from ansorpy.api.request import Request
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
    with accounted(request):
        networks = open_networks(specs, request)
        with followed(request) as following:
            finished = tune_networks(networks, following)
    print(f"tuned {len(networks.tasks)} tasks")
    for model, done in zip(models, finished, strict=True):
        _show(done, Lookup(model, **those(LookupArguments, arguments)), shared.get("memory"))


def _demand_kept(database: Path) -> None:
    """Raise :class:`ForeignFile` if *database* exists but nothing can be added to it."""
    from ansorpy.errors import ForeignFile
    from ansorpy.measure.records.schema import is_read_only

    if is_read_only(database):
        raise ForeignFile(
            f"{database} cannot be written: nothing that is measured would be kept",
            hint="name another file with --db",
        )


def _show(finished: Finished, lookup: Lookup, memory: str | None) -> None:
    """Print the time of the kernels, and the command that exports the same tasks."""
    from ansorpy.api.assemble import kernels_median_s
    from ansorpy.cli.progress import milliseconds

    name, total_s = finished.project.name, kernels_median_s(finished.project, finished.chosen)
    options = ["-o", f"{name.replace(os.sep, '-').lstrip('.-')}.so"]
    options += [] if memory is None else ["--memory", memory]
    print(f"{name}: {'not timed' if total_s is None else f'{milliseconds(total_s)} in kernels'}")
    print(f"write the library with: {lookup.command('export', *options)}")
