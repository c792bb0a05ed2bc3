"""``ansorpy show``: the tasks and kernels of a network or library, and their programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from ansorpy.api.arguments import LookupArguments, SizeArguments
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, Plugins
from ansorpy.cli.tasks import selected
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import Table, say
from ansorpy.evaluation.tables import show as show_table
from ansorpy.options import stated
from ansorpy.quantities import ms_of

if TYPE_CHECKING:
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.project import Project
    from ansorpy.api.tuner import Chosen, Tuner
    from ansorpy.evaluation.kernels import ShownKernel
    from ansorpy.ir.task import Task
    from ansorpy.runtime.footprint import Footprint
    from ansorpy.schedule.state import State

__all__ = ["show"]

_NEST = "nest"


@with_options
def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    task: Annotated[
        str | None,
        typer.Option("--task", help="Only the task or kernel with this name or number."),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="How to print kernels, or the task given with --task: definition, nest, steps, "
            "program, or of a network generated code: llvm or asm for CPUs, cuda or ptx for GPUs, "
            "c for C.",
        ),
    ] = _NEST,
    limits: Annotated[
        bool,
        typer.Option(
            "--limits",
            help="Of a network's calls, print the predicted times and what limits each: memory, "
            "arithmetic or launches.",
        ),
    ] = False,
    *,
    as_json: AsJson = False,
    plugin: Plugins = None,
    **arguments: Unpack[LookupArguments],
) -> None:
    """List a network's tasks, or print the best program of one as loops, steps or code.

    Of a library, print the kernels: each schedule below the sizes that it serves.
    """
    from ansorpy.api.evaluate.libraries import is_library
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.cli.program_text import require_form
    from ansorpy.cli.status_line import busy

    load_plugins(plugin or ())
    lookup = Lookup(model, plugins=plugin or (), **arguments)
    if limits:
        _show_limits(lookup, task, form, as_json)
        return
    if is_library(model):
        _show_library(lookup, task, form, as_json)
        return
    if task is not None:
        require_form(form, lookup.request.target)
    elif form != _NEST:
        raise UsageError("--as is for one task of a network", hint="name it with --task")
    with busy(f"reading {model}"):
        project = lookup.project
    if task is None:
        _list(lookup, as_json)
    elif _is_kernel(project, task):
        _show_kernel(lookup, task, form, as_json)
    else:
        _show_task(lookup, task, form, as_json)


def _show_limits(lookup: Lookup, task: str | None, form: str, as_json: bool) -> None:
    from ansorpy.api.evaluate.profiling import predictions_of
    from ansorpy.evaluation.profile import bounds_table, profile_table

    if task is not None or form != _NEST:
        raise UsageError("--limits is for all calls", hint="leave --task and --as out")
    time = "us predicted"
    calls, memory = predictions_of(lookup)
    if as_json:
        facts = [call.to_dict("predicted_s") for call in calls]
        print(json.dumps({"calls": facts, "memory": memory.to_dict()}, indent=2))
        return
    show_table(profile_table(calls, lookup.project.name, time))
    show_table(bounds_table(calls, time))
    say(str(memory))


def _show_library(lookup: Lookup, wanted: str | None, form: str, as_json: bool) -> None:
    from ansorpy.cli.kernels import library_kernels, library_reach
    from ansorpy.cli.program_text import FORMS, program_text
    from ansorpy.evaluation.kernels import kernels_table, reach_table

    if form not in FORMS:
        raise UsageError(
            f"a kernel of a library cannot be shown as {form!r}",
            hint=f"use one of {', '.join(FORMS)}, or give the ONNX file and --db",
        )
    sizes = [argument.flag for argument in stated(SizeArguments, lookup.arguments)]
    if sizes:
        raise UsageError(
            f"{lookup.model} is a library, which is shown for all of its sizes",
            hint=f"leave out {', '.join(sizes)}",
        )
    kernels = library_kernels(lookup.model)
    reaches = library_reach(lookup.model, kernels)

    def printed(state: State) -> str:
        return program_text(state, form, lookup.request.target)

    chosen = selected(kernels, wanted, "kernel")
    if as_json:
        facts = [kernel.to_dict(form, printed) for kernel in chosen]
        print(json.dumps({"dims": [r.to_dict() for r in reaches], "kernels": facts}, indent=2))
        return
    if wanted is None:
        if reaches:
            show_table(reach_table(reaches, len(kernels)))
        show_table(kernels_table(kernels))
        print()
    _print_kernels(chosen, printed)


def _print_kernels(kernels: Sequence[ShownKernel], printed: Callable[[State], str]) -> None:
    print("\n\n".join(kernel.text(printed) for kernel in kernels))


def _is_kernel(project: Project, wanted: str) -> bool:
    """Whether *wanted* is the name of a kernel for several sizes, each of which is a task."""
    workloads = project.cuts.workloads.values()
    return any(workload.name == wanted and workload.dag.dims for workload in workloads)


def _show_kernel(lookup: Lookup, wanted: str, form: str, as_json: bool) -> None:
    from ansorpy.api.evaluate.models import finished_from
    from ansorpy.cli.kernels import kernels_of
    from ansorpy.cli.program_text import program_text

    lookup.warn_of_predictions()
    finished = finished_from(lookup)
    kernels = kernels_of(finished.project, finished.chosen)
    [kernel] = selected(kernels, wanted, "kernel")
    task = finished.chosen[kernels.index(kernel)].task

    def printed(state: State) -> str:
        return program_text(state, form, task.target, prefetch=task.reuse_distance_bytes > 0)

    if as_json:
        print(json.dumps(kernel.to_dict(form, printed)))
    else:
        _print_kernels([kernel], printed)


def _show_task(lookup: Lookup, wanted: str, form: str, as_json: bool) -> None:
    from ansorpy.api.tuner import open_tuner
    from ansorpy.cli.program_text import DEFINITION

    with open_tuner(lookup.request) as tuner:
        [task] = selected(lookup.project.all_tasks, wanted)
        if form != DEFINITION:
            lookup.warn_of_predictions([task])
        text = _text(task, tuner, form)
        print(json.dumps({"task": task.name, form: text}) if as_json else text)


def _text(task: Task, tuner: Tuner, form: str) -> str:
    from ansorpy.cli.program_text import DEFINITION, program_text
    from ansorpy.ir.text.printer import text

    if form == DEFINITION:
        return text(task.dag)
    state = tuner.choose([task])[0].state
    return program_text(state, form, task.target, prefetch=task.reuse_distance_bytes > 0)


def _list(lookup: Lookup, as_json: bool) -> None:
    from ansorpy.api.alternatives import timed_regions
    from ansorpy.api.tuner import open_tuner
    from ansorpy.cli.kernels import network_reach
    from ansorpy.evaluation.alternatives import alternatives_json, alternatives_table
    from ansorpy.evaluation.kernels import kernels_table, reach_table

    project = lookup.project
    with open_tuner(lookup.request) as tuner:
        regions = timed_regions(project, tuner.recorded_s)
        rows = [_facts(project, task, tuner) for task in project.all_tasks]
        cut = project.decided([region.fastest for region in regions])
        chosen = tuner.kept(cut.tasks)
    memory, kernels = _made_of(chosen, cut, lookup)
    reaches = network_reach(project)
    if as_json:
        facts = {
            "tasks": rows,
            "regions": [alternatives_json(region) for region in regions],
            "memory": memory.to_dict(),
            "dims": [reach.to_dict() for reach in reaches],
            "kernels": [kernel.to_dict("nest", lambda state: state.text()) for kernel in kernels],
        }
        print(json.dumps(facts, indent=2))
        return
    if reaches:
        show_table(reach_table(reaches, len(project.network.workloads())))
    _show_tasks(project.name, rows)
    if regions:
        show_table(alternatives_table(regions))
    if kernels:
        show_table(kernels_table(kernels))
    say(str(memory))
    print(f"next: {lookup.command('show', '--task', '0')}")


def _show_tasks(name: str, rows: Sequence[dict[str, Any]]) -> None:
    heading = ("#", "task", "calls", "MFLOP", "trials", "best us")
    cells = tuple(
        (
            str(number),
            row["name"],
            f"{row['calls']:g}",
            f"{row['flops'] * 1e-6:.2f}",
            str(row["trials"]),
            "-" if row["best_ms"] is None else f"{row['best_ms'] * 1e3:.1f}",
        )
        for number, row in enumerate(rows)
    )
    show_table(Table(name, heading, cells, frozenset(heading) - {"task"}))


def _made_of(
    chosen: Sequence[Chosen] | None, project: Project, lookup: Lookup
) -> tuple[Footprint, list[ShownKernel]]:
    """Memory of *project* with the programs *chosen*, and its kernels for several sizes.

    If a program is missing, memory that does not depend on programs, and no kernels.
    """
    from ansorpy.api.assemble import plan_of
    from ansorpy.api.evaluate.models import finished_from
    from ansorpy.cli.kernels import kernels_of
    from ansorpy.ir.extents import most
    from ansorpy.runtime.footprint import Footprint

    if chosen is None:
        network = project.network
        ports = sum(most(t.bytes) for t in (*network.inputs, *network.outputs))
        return Footprint(project.constant_bytes, most(network.arena.bytes), None, ports), []
    if not project.is_sized:
        return plan_of(project, chosen, lookup.request.threads).footprint, []
    finished = finished_from(lookup)
    plan = plan_of(finished.project, finished.chosen, lookup.request.threads)
    return plan.footprint, kernels_of(finished.project, finished.chosen)


def _facts(project: Project, task: Task, tuner: Tuner) -> dict[str, Any]:
    best = tuner.database.best(task.key)
    return {
        "name": task.name,
        "key": task.key,
        "calls": project.most_calls[task.key],
        "flops": task.flops,
        "bytes": task.bytes,
        "trials": tuner.database.trials(task.key),
        "best_ms": None if best is None else ms_of(best.median_s),
    }
