"""For the site: pages that the program itself fills, at marks such as ``<!-- options -->``."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import typer

from ansorpy.cli.main import VERBS
from ansorpy.measure.records.schema import FORMAT, IN_MEMORY, connect

__all__ = ["on_page_markdown"]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its marks replaced (a hook of mkdocs)."""
    for mark, lines in (("options", _options), ("database", _columns)):
        if f"<!-- {mark} -->" in markdown:
            markdown = markdown.replace(f"<!-- {mark} -->", "\n".join(lines()))
    return markdown


def _options() -> Iterator[str]:
    """A heading and a table for every verb."""
    for verb in VERBS:
        command = _command(verb)
        yield f"\n## {command.name}\n\n{command.help}\n"
        yield "| option | value | meaning | default |\n|---|---|---|---|"
        yield from map(_row, command.params)


def _columns() -> Iterator[str]:
    """The columns of the tables of a new database."""
    yield f"## Columns\n\nFormat {FORMAT}.\n\n| table | columns |\n|---|---|"
    with closing(connect(IN_MEMORY)) as made:
        tables = made.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for [table] in tables:
            columns = made.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
            cells = ", ".join(f"{_code(name)} {kind}" for name, kind in columns)
            yield f"| {_code(table)} | {cells} |"


def _command(verb: Callable[..., Any]) -> Any:
    app = typer.Typer(add_completion=False)
    app.command(verb.__name__)(verb)
    return typer.main.get_command(app)


def _row(param: Any) -> str:
    annotated = getattr(param.type_descriptor.annotation, "__name__", "")
    kind = param.metavar or ("" if annotated == "bool" else annotated)
    default = param.default if isinstance(param.default, str | int | float) else ""
    given = "" if isinstance(default, bool) else str(default)
    names = ", ".join(map(_code, (*param.opts, *param.secondary_opts)))
    return f"| {names} | {_code(kind)} | {_escape(param.help or '')} | {_code(given)} |"


def _code(text: str) -> str:
    return f"<code>{_escape(text)}</code>" if text else ""


def _escape(text: str) -> str:
    """*text* as it stands in a cell of a table."""
    return html.escape(text).replace("|", "&#124;").replace("\n", " ")
