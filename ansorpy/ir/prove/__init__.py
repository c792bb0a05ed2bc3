"""Prove that a loop program's memory accesses are correct, or find those that are not."""

from __future__ import annotations

from ansorpy.ir.prove.conflicts import conflicting_loops
from ansorpy.ir.prove.findings import Claim, Finding, Proof, Verdict
from ansorpy.ir.prove.prover import prove

__all__ = ["Claim", "Finding", "Proof", "Verdict", "conflicting_loops", "prove"]
