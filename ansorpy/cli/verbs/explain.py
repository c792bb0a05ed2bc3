"""``ansorpy explain``: show the verdict of each rule, and the resulting sketches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import ExplainArguments, SizeArguments, TaskArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import ModelFile, Plugins, TaskName
from ansorpy.options import those

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
    plugin: Plugins = None,
    **arguments: Unpack[ExplainArguments],
) -> None:
    """Print each rule's verdict and reason for each stage of a network's tasks, then the sketches.

    Each definition is shown with a lower bound on its time: once a program is clearly faster than
    that, the search ignores the definition's sketches.
    """
    from ansorpy.api.parts import load_plugins
    from ansorpy.api.project import open_project
    from ansorpy.api.request import Request
    from ansorpy.cli.tasks import selected
    from ansorpy.measure.probe.calibrate import calibrated
    from ansorpy.rules.derive import explain as explained
    from ansorpy.rules.derive import explain_relations
    from ansorpy.rules.presets import preset_for

    load_plugins(plugin or ())
    request = Request.of(effort="none", **those(TaskArguments, arguments))
    request = replace(request, target=calibrated(request.target))
    project = open_project(model, request, **those(SizeArguments, arguments))
    for chosen in selected(project.all_tasks, task):
        print(f"task {chosen.name}")
        preset = preset_for(chosen.target)
        told = (chosen.dag, chosen.target, preset, chosen.precision)
        print(explain_relations(*told) if relations else explained(*told, _bound(chosen)))
        print()


def _bound(task: Task) -> Callable[[Definition], str]:
    from ansorpy.cost.bound import least_seconds

    def remark(definition: Definition) -> str:
        return f", takes at least {least_seconds(task, definition.dag) * 1e3:.3g} ms"

    return remark
