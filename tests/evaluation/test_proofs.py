"""Proofs in counts and words."""

from __future__ import annotations

import pytest

from ansorpy.errors import VerificationFailed
from ansorpy.evaluation.proofs import ProofCounts, StaticVerification
from ansorpy.ir.prove import Claim, Finding, Proof

GOOD = Proof.of([Finding.proved(Claim.BOUNDS), Finding.proved(Claim.APART)])
BAD = Proof.of([Finding.proved(Claim.BOUNDS), Finding.refuted(Claim.APART, "threads 0 and 1 ...")])
GATHER = Proof.of([Finding.by_data(Claim.BOUNDS, "what it reads depends on data")])
CUT = Proof((), "time: no answer within 2 s")


def test_claims_are_counted_by_verdict() -> None:
    assert str(ProofCounts.of([GOOD])) == (
        "memory safety of 1 program: 2 claims proved, 0 refuted, 0 undecided"
    )
    assert str(ProofCounts.of([GOOD, BAD, GATHER, CUT])) == (
        "memory safety of 4 programs: 3 claims proved, 1 refuted, 1 undecided (1 because of data), "
        "1 not finished"
    )


def test_what_is_not_proved_is_named_and_what_is_refuted_fails() -> None:
    found = StaticVerification("net.so", (("conv", GOOD), ("mm", BAD), ("at", GATHER), ("s", CUT)))
    assert found.lines()[:-1] == [
        "mm: refuted: threads 0 and 1 ...",
        "at: undecided: what it reads depends on data",
        "s: not finished: time: no answer within 2 s",
    ]
    assert [row[-1] for row in found.table().rows] == [
        "proved", "refuted", "undecided", "not finished",
    ]  # fmt: skip
    with pytest.raises(VerificationFailed, match="1 of 4 programs are refuted: mm: threads 0"):
        found.demand()
    StaticVerification("net.so", (("conv", GOOD), ("at", GATHER))).demand()


def test_json_names_each_open_claim() -> None:
    [program] = StaticVerification("net.so", (("at", GATHER),)).to_dict()["programs"]
    assert program["undecided"] == [
        {"claim": "bounds", "message": "what it reads depends on data", "depends_on_data": True}
    ]
