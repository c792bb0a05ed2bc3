"""Networks whose caches grow in place: the sizes at which they are tuned."""

from __future__ import annotations

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.api.sized.task_group import MOST_SIZES
from ansorpy.ir.sizes import fixed
from tests.runtime.growing import decoder


def test_tasks_are_tuned_at_the_largest_capacity() -> None:
    case = decoder()
    request = Request.of(effort="none", target="x86-64-v4", threads=2)
    project = open_project(case.network, request, dims={"past": (0, 300)}, alias=case.alias)
    groups = {group.dag.main_dim.name: group for group in project.groups if group.dag.dims}
    tuned = {
        name: [[fixed(size) for size in sizes.values()] for sizes in group.tasks.values()]
        for name, group in groups.items()
    }
    assert len(tuned["past"]) == MOST_SIZES and {max(sizes) for sizes in tuned["past"]} == {301}
    [copied] = [group for group in project.groups if group.dag.dims and not group.dag.shape_dims]
    assert len(copied.tasks) == 1  # new rows are copied alike at all sizes
