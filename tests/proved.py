"""Programs that tests draw are also proved to access memory as they should."""

from __future__ import annotations

from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.schedule.lowering.program import Lowered

__all__ = ["assert_proved"]


def assert_proved(lowered: Lowered) -> None:
    """Fail if something of *lowered* is refuted, or undecided for another reason than data."""
    proof = proof_of(lowered)
    assert not proof.refuted, proof.refuted[0]
    assert proof.is_decided, [f for f in proof.undecided if not f.depends_on_data][0]
