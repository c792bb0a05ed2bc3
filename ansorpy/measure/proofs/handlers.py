"""The proving worker: receives a definition and steps, and answers with the proof."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.ir.prove import Proof, prove
from ansorpy.measure.proofs.wire import proof_to_fields
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.serialize import state_from_json

__all__ = ["make_handlers", "proof_of"]


def proof_of(lowered: Lowered) -> Proof:
    """Prove the program of a call and the one that packs its constants."""
    found = prove(lowered.run, lowered.bind)
    return found if lowered.bind is None else found + prove(lowered.bind)


def _prove(message: Message) -> Message:
    definition, steps = message.blobs
    return Message("proof", proof_to_fields(proof_of(lower(state_from_json(definition, steps)))))


def make_handlers() -> Mapping[str, Handler]:
    """The handlers of a proving worker."""
    return {"prove": _prove}
