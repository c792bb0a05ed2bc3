"""``ansorpy explain``: show the verdict of each rule, and the resulting sketches."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import ExplainArguments, SizeArguments, TaskArguments
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, ModelFile, Plugins, TaskName, refuse_unused
from ansorpy.cli.tasks import selected
from ansorpy.options import those
from ansorpy.quantities import latency_text

if TYPE_CHECKING:
    from ansorpy.ir.task import Task
    from ansorpy.rules.algorithms.base import Definition

__all__ = ["explain"]


@with_options
def explain(
    model: ModelFile,
    task: TaskName = None,
    relations: Annotated[
        bool, typer.Option("--relations", help="Print the elements that each stage reads instead.")
    ] = False,
    in_full: Annotated[
        bool, typer.Option("--all", help="Also print the rules that do not apply, and all loops.")
    ] = False,
    *,
    as_json: AsJson = False,
    plugin: Plugins = None,
    **arguments: Unpack[ExplainArguments],
) -> None:
    """Show the rules that apply to the stages of a network's tasks, and the resulting sketches.

    Each definition is shown with a lower bound on its time: once a program is clearly faster than
    that, the search ignores the definition's sketches.
    """
    from ansorpy.api.project import open_project
    from ansorpy.api.request import Request
    from ansorpy.cli.status_line import busy
    from ansorpy.measure.probe.calibrate import calibrated
    from ansorpy.rules.explain import explain as explained
    from ansorpy.rules.explain import explain_relations
    from ansorpy.rules.presets import preset_for

    if relations:
        refuse_unused("explain --relations", {"--all": in_full})
    load_plugins(plugin or ())
    request = Request.of(effort="none", **those(TaskArguments, arguments))
    with busy(f"reading {model}"):
        request = replace(request, target=calibrated(request.target))
        project = open_project(model, request, **those(SizeArguments, arguments))
    said = {}
    for chosen in selected(project.all_tasks, task):
        told = (chosen.dag, chosen.target, preset_for(chosen.target), chosen.precision)
        said[chosen.key] = (
            explain_relations(*told)
            if relations
            else explained(*told, _bound(chosen), in_full=in_full)
        )
        if not as_json:
            print(f"task {chosen.name}\n{said[chosen.key]}\n")
    if as_json:
        names = {task.key: task.name for task in project.all_tasks}
        tasks = [{"task": names[key], "key": key, "text": text} for key, text in said.items()]
        print(json.dumps({"tasks": tasks}, indent=2))


def _bound(task: Task) -> Callable[[Definition], str]:
    from ansorpy.cost.bound import least_seconds

    def remark(definition: Definition) -> str:
        return f", takes at least {latency_text(least_seconds(task, definition.dag))}"

    return remark
