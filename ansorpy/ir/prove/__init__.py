"""Proves that a loop program accesses memory as it should, or finds where it does not."""

from __future__ import annotations

from ansorpy.ir.prove.conflicts import conflicting_loops
from ansorpy.ir.prove.findings import Claim, Finding, Proof, Verdict
from ansorpy.ir.prove.prover import prove

__all__ = ["Claim", "Finding", "Proof", "Verdict", "conflicting_loops", "prove"]
