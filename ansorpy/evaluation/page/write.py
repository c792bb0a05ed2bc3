"""Write a tuning run as one HTML file that shows everything without a network connection."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from ansorpy.errors import MissingDependency
from ansorpy.evaluation.page.facts import Extras, facts_of
from ansorpy.evaluation.page.recorded_run import recorded_run
from ansorpy.measure.records.database import Database
from ansorpy.writable import demand_writable

__all__ = ["demand_charts", "write_page"]

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("format.js", "specs.js", "charts.js", "page.js", "sections.js")
"""In the order in which the page runs them."""


def demand_charts() -> None:
    """Raise :class:`MissingDependency` unless the library that draws charts is installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "a report needs the library that draws its charts, which is not installed",
            hint="install it: pip install 'ansorpy[report]'",
        ) from None


def write_page(
    path: Path,
    database: Database,
    *,
    run: int | None = None,
    tasks: Collection[str] = (),
    extras: Extras | None = None,
) -> None:
    """Write a run of *database* and the *extras* with it to *path*, as HTML.

    This is run *run*, or the last one that searched: for one of *tasks* (keys), if given.

    Raises:
        MissingDependency: The library that draws charts is not installed.
        UsageError: There is no such run, or *path* cannot be written.
    """
    demand_charts()
    demand_writable(path, reads=[database.path])
    facts = facts_of(recorded_run(database, run, tasks), extras or Extras(), database)
    path.write_text(_page(facts), encoding="utf-8")


def _page(facts: dict[str, Any]) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html.j2").render(
        title=facts["title"],
        facts=_data_text(facts),
        library=_library(),
        style=(_TEMPLATES / "page.css").read_text(encoding="utf-8"),
        scripts=[(_TEMPLATES / name).read_text(encoding="utf-8") for name in _SCRIPTS],
    )


@cache
def _library() -> str:
    """The library of charts as the contents of a script element, which it cannot end.

    In strings of JavaScript, the escape means the same character.
    """
    import vl_convert

    return str(vl_convert.javascript_bundle()).replace("</script", "<\\/script")


def _data_text(facts: dict[str, Any]) -> str:
    """*facts* as JSON that no HTML parser takes for anything else."""
    return json.dumps(facts, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
