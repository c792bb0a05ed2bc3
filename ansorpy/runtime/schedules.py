"""A program as a library records it, packed into one line of text.

It has a definition and steps for each part of the sizes of its dimensions; the dimensions of the
definition have the ranges of that part.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.schedule.serialize import state_from_json, states_to_json
from ansorpy.schedule.state import State

__all__ = ["schedule_text", "states_of"]

_MAX_BYTES = 64 << 20
"""Of definitions and their steps: a few kilobytes as a rule."""


def schedule_text(states: Sequence[State]) -> str:
    """*states*, one for each part of the sizes, as text: a few hundred characters as a rule."""
    parts = json.dumps(list(states_to_json(states)))
    return base64.b64encode(zlib.compress(parts.encode(), 9)).decode()


def states_of(text: str) -> tuple[State, ...]:
    """Inverse of :func:`schedule_text`; raises :class:`ForeignFile` for anything else."""
    try:
        unpacked = zlib.decompressobj().decompress(base64.b64decode(text), _MAX_BYTES)
        return tuple(
            state_from_json(definition, steps) for definition, steps in json.loads(unpacked)
        )
    except (ValueError, TypeError, RecursionError, zlib.error, AnsorpyError) as error:
        reason = error.message if isinstance(error, AnsorpyError) else error
        raise ForeignFile(
            f"a schedule that this ansorpy cannot read: {reason}", hint="compile the model again"
        ) from None
