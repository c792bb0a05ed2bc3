"""``ansorpy compile``: search, then write a shared library and its header."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import (
    CompileArguments,
    LookupArguments,
    NetworkArguments,
    SearchArguments,
)
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import (
    Against,
    AsJson,
    Emit,
    LatencyBound,
    ModelFile,
    PackOption,
    Plugins,
    Quiet,
    Verbose,
)
from ansorpy.options import those

if TYPE_CHECKING:
    from ansorpy.api.events import PeerTimed
    from ansorpy.runtime.execution_plan import ExecutionPlan

__all__ = ["compile"]


@with_options
def compile(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: MODEL's name.so, or .c.")
    ] = None,
    *,
    emit: Emit = None,
    pack: PackOption = None,
    against: Against = None,
    latency_bound: LatencyBound = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write an HTML page about the search."),
    ] = None,
    plugin: Plugins = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    **arguments: Unpack[CompileArguments],
) -> None:
    """Compile a network to a shared library with a C header, tuning it first."""
    from ansorpy.api.emitted import default_form, emitted_target
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.networks import NetworkSpec, open_networks
    from ansorpy.cli.files import emitted_path
    from ansorpy.cli.next_command import export_command
    from ansorpy.cli.progress import Talk
    from ansorpy.cli.searching import accounted, write_library
    from ansorpy.cli.values import latencies_by_network, requests_of
    from ansorpy.runtime.export import check_exportable

    load_plugins(plugin or ())
    requests = requests_of(those(SearchArguments, arguments))
    searched = next((n for n, r in enumerate(requests) if r.budget is not None), 0)
    bounds = latencies_by_network("--latency-bound", latency_bound or (), [model.stem])
    spec = NetworkSpec(
        model, latency_bound=bounds.get(model.stem), **those(NetworkArguments, arguments)
    )  # fmt: skip
    library = emitted_path(model, output, emit, default_form(requests[0].target))
    emitted = [emitted_target(library, r.target, r.threads) for r in requests]
    check_exportable(library, emitted, pack)
    if report is not None:
        from ansorpy.api.evaluate.report import demand_report

        demand_report(report, requests[searched])
    talk = Talk(quiet, verbose, as_json)
    peers = _peers(model, arguments, against, quiet=quiet) if against else []
    with accounted(requests[searched], talk):
        runs = [(open_networks([spec], request), request) for request in requests]
        lookup = Lookup(model, plugins=plugin or (), **those(LookupArguments, arguments))
        again = export_command(lookup, library, memory=arguments.get("memory"), pack=pack)
        written = write_library(runs, library, pack, talk, peers, [again])
    if report is not None:
        tasks, plan = runs[searched][0].tasks, written.versions[searched].plan
        _write_report(report, requests[0].db, tasks, plan)
        said = {"event": "report", "page": str(report)}
        print(json.dumps(said) if as_json else f"wrote {report}")
    written.tell(talk, lookup)


def _write_report(
    page: Path, database: Path, tasks: Collection[str], plan: ExecutionPlan
) -> None:  # fmt: skip
    """Write *page* about the last search of *database*, which found the programs of *plan*."""
    from ansorpy.api.evaluate.report import write_report
    from ansorpy.evaluation.page.facts import Extras

    write_report(page, database, tasks=tasks, extras=Extras(plan))


def _peers(
    model: Path, arguments: CompileArguments, against: Sequence[str], *, quiet: bool
) -> list[PeerTimed]:
    """The time of *model* in the engines *against*."""
    from ansorpy.cli.peers import peers_timed

    return peers_timed(model, arguments, against, quiet=quiet)
