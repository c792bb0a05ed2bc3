"""A program as a library records it: definition and steps, packed into one line of text."""

from __future__ import annotations

import base64
import json
import zlib

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.text.serialize import dag_from_dict
from ansorpy.measure.records.definitions import definition_json
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json

__all__ = ["schedule_text", "state_of"]

_MAX_BYTES = 64 << 20
"""Of a definition and its steps: a few kilobytes as a rule."""


def schedule_text(state: State) -> str:
    """*state* as text, a few hundred characters as a rule."""
    parts = json.dumps([definition_json(state.definition), steps_to_json(state.history)])
    return base64.b64encode(zlib.compress(parts.encode(), 9)).decode()


def state_of(text: str) -> State:
    """Inverse of :func:`schedule_text`; raises :class:`ForeignFile` for anything else."""
    try:
        unpacked = zlib.decompressobj().decompress(base64.b64decode(text), _MAX_BYTES)
        definition, steps = json.loads(unpacked)
        return State.replay(dag_from_dict(json.loads(definition)), steps_from_json(steps))
    except (ValueError, TypeError, RecursionError, zlib.error, AnsorpyError) as error:
        reason = error.message if isinstance(error, AnsorpyError) else error
        raise ForeignFile(
            f"a schedule that this ansorpy cannot read: {reason}", hint="compile the model again"
        ) from None
