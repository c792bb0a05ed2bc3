"""``ansorpy show``: a network's tasks, or the program, steps or machine code of one."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansorpy.cli.options import (
    AsJson,
    Dim,
    ExistingRecords,
    ModelFile,
    Precision,
    PrecisionOption,
    Shape,
    TargetName,
    TaskName,
    Threads,
)

if TYPE_CHECKING:
    from ansorpy.api.project import Project
    from ansorpy.api.session import Chosen, Session
    from ansorpy.ir.task import Task
    from ansorpy.runtime.footprint import Footprint

__all__ = ["Form", "show"]


class Form(StrEnum):
    """The form in which to print a task."""

    definition = "definition"
    nest = "nest"
    steps = "steps"
    program = "program"
    llvm = "llvm"
    asm = "asm"


def show(
    model: ModelFile,
    task: TaskName = None,
    form: Annotated[
        Form, typer.Option("--as", help="What to print of the task given with --task.")
    ] = Form.nest,
    db: ExistingRecords = None,
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
    precision: PrecisionOption = Precision.default,
    as_json: AsJson = False,
) -> None:
    """List a network's tasks, or print the best program of one as loops, steps or code."""
    from ansorpy.api.session import open_session
    from ansorpy.cli.files import existing_records
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.tasks import selected

    lookup = Lookup(model, existing_records(db), target, threads, precision, dim, shape)
    with open_session(lookup.request) as session:
        if task is None:
            _list(lookup.project, session, as_json)
            return
        for chosen in selected(lookup.project.all_tasks, task):
            if form is not Form.definition:
                lookup.warn_of_predictions([chosen])
            text = _text(chosen, session, form)
            print(json.dumps({"task": chosen.name, form.value: text}) if as_json else text)


def _list(project: Project, session: Session, as_json: bool) -> None:
    from ansorpy.api.deciding import decisions, fastest
    from ansorpy.report.tables import Table
    from ansorpy.report.tables import show as show_table
    from ansorpy.report.ways import ways_table

    regions = decisions(project, session.recorded_s)
    memory = _memory(fastest(project, session.recorded_s), session)
    rows = [_facts(project, task, session) for task in project.all_tasks]
    if as_json:
        facts = {"tasks": rows, "regions": [region.to_dict() for region in regions]}
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
        show_table(ways_table(regions))
    print(memory)


def _memory(project: Project, session: Session) -> Footprint:
    """Memory of the recorded programs; if one is missing, what is known without programs."""
    from ansorpy.api.assemble import plan_of
    from ansorpy.runtime.footprint import Footprint

    chosen = session.kept(project.tasks)
    if chosen is not None:
        return plan_of(project, chosen, session.request.threads).footprint
    network = project.network
    ports = sum(t.bytes for t in (*network.inputs, *network.outputs))
    return Footprint(project.constant_bytes, network.arena.bytes, None, ports)


def _facts(project: Project, task: Task, session: Session) -> dict[str, Any]:
    best = session.database.best(task.key)
    return {
        "name": task.name,
        "key": task.key,
        "calls": project.most_calls[task.key],
        "flops": task.flops,
        "bytes": task.bytes,
        "trials": session.database.trials(task.key),
        "best_ms": None if best is None or best.median_s is None else best.median_s * 1e3,
    }


def _text(task: Task, session: Session, form: Form) -> str:
    from ansorpy.codegen.llvm.build import assembly
    from ansorpy.codegen.llvm.emit import emit_llvm
    from ansorpy.ir.printer import text
    from ansorpy.schedule.lower import lower

    if form is Form.definition:
        return text(task.dag)
    chosen: Chosen = session.choose([task])[0]
    if form is Form.nest:
        return chosen.state.text()
    if form is Form.steps:
        return str(chosen.state.history)
    program = lower(chosen.state).run
    if form is Form.program:
        return text(program)
    code = emit_llvm(program, task.target, "kernel", prefetch=task.between_bytes > 0)
    return code if form is Form.llvm else assembly(code, task.target)
