"""For the site: docstrings' references, such as ``:class:`~a.b.C```, become plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data):`~?([\w.]+)`")


class Roles(griffe.Extension):
    """Shows the last part of the name that a role refers to."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the roles in the docstring of *obj*."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(_name, obj.docstring.value)


def _name(match: re.Match[str]) -> str:
    return f"`{match[1].rpartition('.')[2]}`"
