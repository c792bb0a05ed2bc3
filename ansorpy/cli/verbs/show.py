"""``ansorpy show``: list a network's tasks, or show the program, steps or code of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from ansorpy.api.arguments import LookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, ModelFile, TaskName

if TYPE_CHECKING:
    from ansorpy.api.project import Project
    from ansorpy.api.tuner import Tuner
    from ansorpy.ir.task import Task
    from ansorpy.runtime.footprint import Footprint
    from ansorpy.target import Target

__all__ = ["show"]

_DEFINITION = "definition"
_FORMS = (_DEFINITION, "nest", "steps", "program")
"""The forms that every task has; its target's backend adds those of generated code."""


@with_options
def show(
    model: ModelFile,
    task: TaskName = None,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="How to print the task given with --task: definition, nest, steps, program, "
            "or generated code: llvm or asm for CPUs, cuda or ptx for GPUs, c for C.",
        ),
    ] = "nest",
    as_json: AsJson = False,
    **arguments: Unpack[LookupArguments],
) -> None:
    """List a network's tasks, or print the best program of one as loops, steps or code."""
    from ansorpy.api.tuner import open_tuner
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.tasks import selected

    lookup = Lookup(model, **arguments)
    with open_tuner(lookup.request) as tuner:
        if task is None:
            _list(lookup.project, tuner, as_json)
            return
        _require_form(form, lookup.request.target)
        for chosen in selected(lookup.project.all_tasks, task):
            if form != _DEFINITION:
                lookup.warn_of_predictions([chosen])
            text = _text(chosen, tuner, form)
            print(json.dumps({"task": chosen.name, form: text}) if as_json else text)


def _list(project: Project, tuner: Tuner, as_json: bool) -> None:
    from ansorpy.api.alternatives import fastest, timed_regions
    from ansorpy.report.alternatives import alternatives_json, alternatives_table
    from ansorpy.report.tables import Table
    from ansorpy.report.tables import show as show_table

    regions = timed_regions(project, tuner.recorded_s)
    memory = _memory(fastest(project, tuner.recorded_s), tuner)
    rows = [_facts(project, task, tuner) for task in project.all_tasks]
    if as_json:
        facts = {"tasks": rows, "regions": [alternatives_json(region) for region in regions]}
        print(json.dumps(facts | {"memory": memory.to_dict()}, indent=2))
        return
    heading = ("#", "task", "calls", "MFLOP", "trials", "best us")
    cells = tuple(
        (
            str(number),
            row["name"],
            str(row["calls"]),
            f"{row['flops'] * 1e-6:.2f}",
            str(row["trials"]),
            "-" if row["best_ms"] is None else f"{row['best_ms'] * 1e3:.1f}",
        )
        for number, row in enumerate(rows)
    )
    show_table(Table(project.name, heading, cells, frozenset(heading) - {"task"}))
    if regions:
        show_table(alternatives_table(regions))
    print(memory)


def _memory(project: Project, tuner: Tuner) -> Footprint:
    """Memory of the recorded programs; if one is missing, what does not depend on programs."""
    from ansorpy.api.assemble import plan_of
    from ansorpy.runtime.footprint import Footprint

    chosen = tuner.kept(project.tasks)
    if chosen is not None:
        return plan_of(project, chosen, tuner.request.threads).footprint
    network = project.network
    ports = sum(t.bytes for t in (*network.inputs, *network.outputs))
    return Footprint(project.constant_bytes, network.arena.bytes, None, ports)


def _facts(project: Project, task: Task, tuner: Tuner) -> dict[str, Any]:
    best = tuner.database.best(task.key)
    return {
        "name": task.name,
        "key": task.key,
        "calls": project.most_calls[task.key],
        "flops": task.flops,
        "bytes": task.bytes,
        "trials": tuner.database.trials(task.key),
        "best_ms": None if best is None or best.median_s is None else best.median_s * 1e3,
    }


def _require_form(form: str, target: Target) -> None:
    """Raise :class:`UsageError` for a *form* that programs for *target* do not have."""
    from ansorpy.codegen.backends import codegen_of
    from ansorpy.errors import UsageError

    known = (*_FORMS, *codegen_of(target).forms)
    if form not in known:
        raise UsageError(
            f"a program for {target.name} cannot be shown as {form!r}",
            hint=f"use one of {', '.join(known)}",
        )


def _text(task: Task, tuner: Tuner, form: str) -> str:
    from ansorpy.codegen.backends import codegen_of
    from ansorpy.ir.text.printer import text
    from ansorpy.schedule.lowering.program import lower

    if form == _DEFINITION:
        return text(task.dag)
    state = tuner.choose([task])[0].state
    if form == "nest":
        return state.text()
    if form == "steps":
        return str(state.history)
    program = lower(state).run
    if form == "program":
        return text(program)
    code = codegen_of(task.target).forms[form]
    return code.of(program, task.target, "kernel", task.reuse_distance_bytes > 0)
