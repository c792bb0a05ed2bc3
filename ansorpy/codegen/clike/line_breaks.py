"""Break long lines of generated C at loosely binding operators."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["MOST_COLUMNS", "laid_out"]

MOST_COLUMNS = 100

_ASSIGNMENT = re.compile(r"(.*? [+*]?=) (.*;)$")
_BREAKS = ((" ? ", " : "), (" || ",), (" && ",), (" + ", " - "), (" * ",))
"""Operators at which lines may be broken, loosest first."""


def laid_out(text: str, left: str) -> Iterator[str]:
    """Indent *text* by *left* and continue it on further lines if it is too long.

    >>> print(*laid_out("x[i] = a[i];", "  "))
      x[i] = a[i];
    """
    more = left + "    "
    assigned = _ASSIGNMENT.match(text)
    if len(left) + len(text) <= MOST_COLUMNS or "//" in text or text.startswith("for "):
        yield left + text
    elif assigned is None:
        yield from _wrapped(text, left, more)
    else:
        yield from _wrapped(assigned[1], left, more)
        yield from _wrapped(assigned[2], more, more)


def _wrapped(text: str, left: str, more: str) -> Iterator[str]:
    while len(left) + len(text) > MOST_COLUMNS:
        at = _break(text[: MOST_COLUMNS - len(left)])
        if at == 0:
            break
        yield left + text[:at]
        text, left = text[at + 1 :], more
    yield left + text


def _break(text: str) -> int:
    """Position to break *text*, or 0: at the least nesting depth, after the last comma or before
    the last of the loosest operators."""
    last: dict[tuple[int, int], int] = {}
    depth = 0
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c != " ":
            continue
        if text[at - 1 : at] == "," and not text[at + 1 : at + 2].isdigit():
            last[depth, -1] = at
        for binds, signs in enumerate(_BREAKS):
            if text.startswith(signs, at):
                last[depth, binds] = at
    return last[min(last)] if last else 0
