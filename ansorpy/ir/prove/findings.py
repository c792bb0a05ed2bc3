"""Findings of a proof: one verdict per access, region, exchange and output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

__all__ = ["Claim", "Finding", "Proof", "Verdict"]


class Verdict(Enum):
    """Whether a claim holds."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


class Claim(Enum):
    """The properties that a program must have.

    BOUNDS: an access stays in its buffer.  APART: of iterations or threads that run at the same
    time, none accesses an element that another one writes.  DEFINED: an element is written before
    it is read.  COMPLETE: every element of an output is written.  TOGETHER: all threads of a block
    reach each barrier, and all lanes of a team each instruction or exchange that needs them.  HELD:
    a lane accesses only the elements in its own registers of a buffer that a warp holds together.
    """

    BOUNDS = "bounds"
    APART = "apart"
    DEFINED = "defined"
    COMPLETE = "complete"
    TOGETHER = "together"
    HELD = "held"


@dataclass(frozen=True)
class Finding:
    """A claim about one access (or pair of accesses) and its verdict.

    Args:
        message: Why the claim fails, with an example, or why it is undecided; empty if proved.
        depends_on_data: It is undecided because an index or a condition depends on data.
    """

    claim: Claim
    verdict: Verdict
    message: str = ""
    depends_on_data: bool = False

    @staticmethod
    def proved(claim: Claim) -> Finding:
        return Finding(claim, Verdict.PROVED)

    @staticmethod
    def refuted(claim: Claim, message: str) -> Finding:
        return Finding(claim, Verdict.REFUTED, message)

    @staticmethod
    def undecided(claim: Claim, message: str) -> Finding:
        return Finding(claim, Verdict.UNDECIDED, message)

    @staticmethod
    def fails(claim: Claim, message: str, *, certain: bool) -> Finding:
        """A claim that fails; it is only undecided if it is not *certain* because of data."""
        if certain:
            return Finding.refuted(claim, message)
        return Finding.by_data(claim, f"{message} (this depends on data)")

    @staticmethod
    def by_data(claim: Claim, message: str) -> Finding:
        """A claim that is undecided because it depends on data."""
        return Finding(claim, Verdict.UNDECIDED, message, depends_on_data=True)


@dataclass(frozen=True)
class Proof:
    """All findings about one program.

    ``unfinished`` is the reason if the prover was stopped before the end; nothing is proved then.
    """

    findings: tuple[Finding, ...]
    unfinished: str = ""

    @staticmethod
    def of(findings: Iterable[Finding]) -> Proof:
        return Proof(tuple(findings))

    @property
    def verdict(self) -> Verdict:
        """REFUTED if anything is, else UNDECIDED if anything is, else PROVED."""
        if self.refuted:
            return Verdict.REFUTED
        return Verdict.UNDECIDED if self.undecided or self.unfinished else Verdict.PROVED

    @property
    def is_decided(self) -> bool:
        """True if everything is decided except claims that depend on data."""
        return not self.unfinished and all(f.depends_on_data for f in self.undecided)

    def __add__(self, other: Proof) -> Proof:
        """The findings about two programs."""
        return Proof((*self.findings, *other.findings), self.unfinished or other.unfinished)

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """The findings whose claims fail."""
        return self._with(Verdict.REFUTED)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The findings that could not be decided."""
        return self._with(Verdict.UNDECIDED)

    @property
    def proved(self) -> tuple[Finding, ...]:
        """The findings whose claims hold."""
        return self._with(Verdict.PROVED)

    def _with(self, verdict: Verdict) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.verdict is verdict)
