"""What is proved of the programs of a library or network, in counts and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansorpy.errors import VerificationFailed
from ansorpy.evaluation.tables import Table
from ansorpy.ir.prove import Finding, Proof, Verdict
from ansorpy.quantities import counted

__all__ = ["ProofCounts", "StaticVerification"]


@dataclass(frozen=True)
class ProofCounts:
    """The number of claims with each verdict.

    Args:
        by_data: Undecided claims that depend on data.
        unfinished: Programs about which nothing is known because the prover was stopped.
    """

    programs: int
    proved: int
    refuted: int
    undecided: int
    by_data: int
    unfinished: int

    @staticmethod
    def of(proofs: Sequence[Proof]) -> ProofCounts:
        verdicts = Counter(f.verdict for proof in proofs for f in proof.findings)
        return ProofCounts(
            programs=len(proofs),
            proved=verdicts[Verdict.PROVED],
            refuted=verdicts[Verdict.REFUTED],
            undecided=verdicts[Verdict.UNDECIDED],
            by_data=sum(f.depends_on_data for proof in proofs for f in proof.undecided),
            unfinished=sum(bool(proof.unfinished) for proof in proofs),
        )

    def __str__(self) -> str:
        text = f"memory safety of {counted(self.programs, 'program')}: {self.proved} claims proved"
        text += f", {self.refuted} refuted, {self.undecided} undecided"
        if self.by_data:
            text += f" ({self.by_data} because of data)"
        return text + (f", {self.unfinished} not finished" if self.unfinished else "")


@dataclass(frozen=True)
class StaticVerification:
    """The proofs of all programs of *model*, by the programs' names."""

    model: str
    proofs: tuple[tuple[str, Proof], ...]

    @property
    def counts(self) -> ProofCounts:
        return ProofCounts.of([proof for _, proof in self.proofs])

    @property
    def ok(self) -> bool:
        """True when nothing is refuted."""
        return not self.counts.refuted

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-serializable values."""
        programs = [
            {
                "name": name,
                "proved": len(proof.proved),
                "refuted": [_finding(f) for f in proof.refuted],
                "undecided": [_finding(f) for f in proof.undecided],
                "unfinished": proof.unfinished,
            }
            for name, proof in self.proofs
        ]
        return {"model": self.model, "ok": self.ok, "programs": programs}

    def table(self) -> Table:
        """One row per program."""
        rows = tuple(
            (
                name,
                str(len(proof.proved)),
                str(len(proof.refuted)),
                str(len(proof.undecided)),
                "not finished" if proof.unfinished else proof.verdict.value,
            )
            for name, proof in self.proofs
        )
        heading = ("program", "proved", "refuted", "undecided", "result")
        return Table(f"memory safety of {self.model}", heading, rows, frozenset(heading[1:4]))

    def lines(self) -> list[str]:
        """One line for each claim that is not proved, then the counts."""
        found = [
            f"{name}: {finding.verdict.value}: {finding.message}"
            for name, proof in self.proofs
            for finding in (*proof.refuted, *proof.undecided)
        ]
        found += [
            f"{name}: not finished: {p.unfinished}" for name, p in self.proofs if p.unfinished
        ]
        return [*found, str(self.counts)]

    def demand(self) -> None:
        """Raise :class:`VerificationFailed`, naming the first claim refuted, unless none is."""
        bad = [(name, proof.refuted[0]) for name, proof in self.proofs if proof.refuted]
        if bad:
            name, first = bad[0]
            raise VerificationFailed(
                f"{len(bad)} of {len(self.proofs)} programs are refuted: {name}: {first.message}"
            )


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "claim": finding.claim.value,
        "message": finding.message,
        "depends_on_data": finding.depends_on_data,
    }
