"""For the site: pages that the program itself fills, by the marks ``<!-- options -->``."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any

import typer

from ansorpy.cli.main import VERBS

__all__ = ["on_page_markdown"]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its marks replaced (a hook of mkdocs)."""
    return markdown.replace("<!-- options -->", "\n".join(_options()))


def _options() -> Iterator[str]:
    """A heading and a table for every verb."""
    for verb in VERBS:
        command = _command(verb)
        yield f"\n## {command.name}\n\n{command.help}\n"
        yield "| option | value | meaning | default |\n|---|---|---|---|"
        yield from map(_row, command.params)


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
