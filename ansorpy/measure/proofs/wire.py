"""Proofs as JSON, for a worker's answers and for the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.ir.prove import Claim, Finding, Proof, Verdict

__all__ = ["proof_from_fields", "proof_to_fields"]


class _Open(BaseModel):
    """A finding that is not proved."""

    model_config = ConfigDict(extra="forbid")

    claim: Claim
    verdict: Verdict
    message: str
    depends_on_data: bool


class _Proof(BaseModel):
    """A finished proof: how many findings of each claim are proved, and the others."""

    model_config = ConfigDict(extra="forbid")

    proved: dict[Claim, int] = Field(default_factory=dict)
    open: list[_Open] = Field(default_factory=list)


def proof_to_fields(proof: Proof) -> dict[str, object]:
    """The findings of *proof*, which is finished, as JSON-serializable values."""
    return _Proof(
        proved=dict(Counter(f.claim for f in proof.proved)),
        open=[
            _Open(
                claim=f.claim, verdict=f.verdict, message=f.message,
                depends_on_data=f.depends_on_data,
            )
            for f in (*proof.refuted, *proof.undecided)
        ],
    ).model_dump(mode="json")  # fmt: skip


def proof_from_fields(fields: Mapping[str, object]) -> Proof:
    """Inverse of :func:`proof_to_fields`, in another order; raises :class:`ForeignFile`."""
    try:
        read = _Proof.model_validate(fields)
    except ValidationError as error:
        raise ForeignFile(f"not a proof: {error.errors()[0]['msg']}") from None
    proved = [Finding.proved(claim) for claim, n in read.proved.items() for _ in range(n)]
    found = [Finding(f.claim, f.verdict, f.message, f.depends_on_data) for f in read.open]
    return Proof.of([*proved, *found])
