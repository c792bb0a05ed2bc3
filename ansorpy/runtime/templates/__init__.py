"""Templates of a library's header, example program and C source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

__all__ = ["rendered"]

_FOLDER = Path(__file__).parent


def rendered(template: str, values: Mapping[str, object]) -> str:
    """Render the file *template* with *values*."""
    return _compiled(template).render(values)


@cache
def _compiled(template: str) -> jinja2.Template:
    """The file *template*, which takes longer to compile than to render."""
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    return environment.from_string((_FOLDER / template).read_text())
