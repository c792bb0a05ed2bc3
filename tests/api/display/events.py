"""Events of a search for two tasks."""

from __future__ import annotations

from pathlib import Path

from ansorpy.api.events import Planned
from ansorpy.api.request import Request
from ansorpy.search.events import Phase, Progress
from ansorpy.tasks.trial_plan import plan
from tests.search.tasks import matmul, scale

LARGE, SMALL = matmul(512, 512, 512), scale(64)


def planned(db: Path, **limits: object) -> Planned:
    """The plan of a search for both tasks; the small one is called three times."""
    request = Request.of(db=db, **limits)  # type: ignore[arg-type]
    assert request.budget is not None
    return Planned((), request, plan({LARGE: 1.0, SMALL: 3.0}, request.budget))


def report(large: bool = True, **values: object) -> Progress:
    """A report on one of the tasks."""
    task = LARGE if large else SMALL
    given = {"phase": Phase.SEARCHING, "task": task.name, "key": task.key, **values}
    return Progress(**given)  # type: ignore[arg-type]
