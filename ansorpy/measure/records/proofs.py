"""What was proved of programs, in the tuning database: each is proved once by one version."""

from __future__ import annotations

import json

from ansorpy.errors import ForeignFile
from ansorpy.ir.prove import Proof
from ansorpy.measure.proofs.wire import proof_from_fields, proof_to_fields
from ansorpy.measure.records.schema import Store
from ansorpy.measure.records.signing import is_signed, sign
from ansorpy.version import __version__

__all__ = ["ProofStore"]


class ProofStore(Store):
    """Finished proofs of programs, named by definition and digest of the steps.

    Those of another version of ansorpy, which may lower or prove otherwise, count as missing, and
    so do damaged ones and those that this user did not sign.
    """

    def get(self, definition: str, digest: str) -> Proof | None:
        """The proof of a program; None if it was not proved."""
        rows = self._rows(
            "SELECT CAST(findings AS BLOB) AS findings, signature FROM proofs"
            " WHERE definition = ? AND digest = ? AND version = ?",
            definition, digest, __version__,
        )  # fmt: skip
        if not rows:
            return None
        findings = rows[0]["findings"]
        try:
            stated = definition, digest, __version__, findings
            if not is_signed(rows[0]["signature"], "proof", *stated):
                return None
            return proof_from_fields(json.loads(findings))
        except (ForeignFile, RecursionError, ValueError):
            return None

    def put(self, definition: str, digest: str, proof: Proof) -> None:
        """Record the finished *proof* of a program."""
        stated = definition, digest, __version__, json.dumps(proof_to_fields(proof))
        signature = sign("proof", *stated)
        self._do("INSERT OR REPLACE INTO proofs VALUES (?, ?, ?, ?, ?)", *stated, signature)
