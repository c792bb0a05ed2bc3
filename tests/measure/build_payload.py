"""Build workers that meet a compiler which hangs or dies on some schedules (by their split)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ansorpy.ir.dag import ComputeDAG
from ansorpy.measure.build_job import BuildSession
from ansorpy.measure.protocol import Message
from ansorpy.measure.worker import Handler
from tests.measure import payload

HANG, DIE, JUNK, LIE, EAT, BOAST = 11, 13, 17, 19, 23, 29


class Hungry(BuildSession):
    """A compiler that wants all memory."""

    def _definition(self, text: bytes) -> ComputeDAG:
        return super()._definition(text * (1 << 30))


def _boast(message: Message) -> Message:
    return Message("failed", {"kind": "ok", "reason": "it is fast"})


def make_handlers() -> Mapping[str, Handler]:
    session, bad, hungry = BuildSession(), payload.make_handlers(), Hungry()
    planted = {HANG: bad["spin"], DIE: bad["segfault"], JUNK: bad["junk"], LIE: bad["echo"]}
    planted |= {EAT: hungry.build, BOAST: _boast}

    def build(message: Message) -> Message:
        steps = json.loads(message.blobs[1])
        factor = steps[0]["factors"][0] if steps else 1
        if factor in planted:
            return planted[factor](message)
        return session.build(message)

    return {"build": build}
