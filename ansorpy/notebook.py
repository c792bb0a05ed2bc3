"""What notebooks show for an object: a small card of HTML, without scripts, in the page's colours.

>>> print(card("Kernel", "C", {"threads": "2"}))  # doctest: +ELLIPSIS
<div style="..."><b>Kernel</b> <code>C</code><table ...><tr><td ...>threads</td>...</div>
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

__all__ = ["card", "grid"]

_LINE = "1px solid rgba(128,128,128,.35)"
_CARD = (
    f"display:inline-block;box-sizing:border-box;max-width:100%;border:{_LINE};border-radius:6px;"
    "padding:.5em .8em;text-align:left"
)
_TABLE = "border-collapse:collapse;margin:.4em 0;color:inherit;font-size:inherit"
"""Old pages let tables inherit neither."""
_CODE = "max-height:24em;overflow:auto;margin:.4em 0;line-height:1.25"


def card(
    kind: str,
    name: str,
    facts: Mapping[str, str | None],
    folded: Mapping[str, str] | None = None,
    tables: Sequence[str] = (),
) -> str:
    """An object as HTML: its *kind* and *name*, a row for each fact, and texts to unfold.

    Args:
        facts: Values by name; one that is None or empty is left out.
        folded: Long texts by their headings.
        tables: HTML between them, as :func:`grid` makes it.
    """
    rows = "".join(
        f"<tr>{_cell(name, 'opacity:.7;')}{_cell(value)}</tr>"
        for name, value in facts.items() if value
    )  # fmt: skip
    table = f'<table style="{_TABLE}">{rows}</table>' if rows else ""
    details = "".join(
        f"<details><summary>{escape(heading)}</summary>"
        f'<pre style="{_CODE}">{escape(text)}</pre></details>'
        for heading, text in (folded or {}).items()
    )
    return (
        f'<div style="{_CARD}"><b>{escape(kind)}</b> <code>{escape(name)}</code>'
        f"{table}{''.join(tables)}{details}</div>"
    )


def grid(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Collection[str] = (),
    title: str = "",
) -> str:
    """A table as HTML; columns named in *numeric* are right-aligned."""
    sides = ["right" if name in numeric else "left" for name in heading]
    first = "".join(
        f'<th style="text-align:{side};padding:0 .6em;border-bottom:{_LINE}">{escape(cell)}</th>'
        for cell, side in zip(heading, sides, strict=True)
    )
    styles = [f"text-align:{side};" for side in sides]
    cells = ["".join(_cell(*pair) for pair in zip(row, styles, strict=True)) for row in rows]
    others = "".join(f"<tr>{each}</tr>" for each in cells)
    caption = f'<caption style="text-align:left">{escape(title)}</caption>' if title else ""
    return f'<table style="{_TABLE}">{caption}<tr>{first}</tr>{others}</table>'


def _cell(text: str, style: str = "text-align:left;") -> str:
    return f'<td style="{style}padding:0 .6em">{escape(text)}</td>'
