"""Build workers that meet a compiler which hangs or dies on some schedules (by their split)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ansorpy.measure.build import handlers
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from tests.measure import payload

HANG, DIE, JUNK, LIE, EAT, BOAST = 11, 13, 17, 19, 23, 29


def _boast(message: Message) -> Message:
    return Message("failed", {"kind": "ok", "reason": "it is fast"})


def vast(message: Message) -> Message:
    """The same request with a definition whose text takes 1 GiB, four bytes a character."""
    _, steps = message.blobs
    text = '"\U0001f600'.encode() + bytes(1 << 28) + b'"'
    return Message(message.kind, message.fields, (text, steps))


def make_handlers() -> Mapping[str, Handler]:
    bad = payload.make_handlers()
    planted = {HANG: bad["spin"], DIE: bad["segfault"], JUNK: bad["junk"], LIE: bad["echo"]}
    planted |= {EAT: lambda message: handlers.build(vast(message)), BOAST: _boast}

    def build(message: Message) -> Message:
        steps = json.loads(message.blobs[1])
        factor = steps[0]["factors"][0] if steps else 1
        if factor in planted:
            return planted[factor](message)
        return handlers.build(message)

    return {"build": build}
