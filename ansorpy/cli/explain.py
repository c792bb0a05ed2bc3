"""``ansorpy explain``: which rule answered what, and the sketches that follow."""

from __future__ import annotations

from ansorpy.cli.options import Dim, ModelFile, Shape, TargetName, TaskName, Threads

__all__ = ["explain"]


def explain(
    model: ModelFile,
    task: TaskName = None,
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
) -> None:
    """Print rule by stage by verdict by reason, then the sketches, of a network's tasks."""
    from ansorpy.cli.searching import make_request, project_of
    from ansorpy.cli.tasks import selected
    from ansorpy.rules.derive import explain as explained
    from ansorpy.rules.presets import preset_for

    request = make_request(target=target, threads=threads)
    project = project_of(model, request, shape, dim)
    for chosen in selected(project.tasks, task):
        print(f"task {chosen.name}")
        print(explained(chosen.dag, chosen.target, preset_for(chosen.target)))
        print()
