"""What was proved of programs, in the tuning database: each is proved once by one version."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from ansorpy.errors import ForeignFile
from ansorpy.ir.prove import Proof
from ansorpy.measure.proofs.wire import proof_from_fields, proof_to_fields
from ansorpy.measure.records.schema import plain_errors
from ansorpy.measure.records.signing import is_signed, sign
from ansorpy.version import __version__

__all__ = ["ProofStore"]


class ProofStore:
    """Finished proofs of programs, named by definition and digest of the steps.

    Those of another version of ansorpy, which may lower or prove otherwise, count as missing, and
    so do damaged ones and those that this user did not sign.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def get(self, definition: str, digest: str) -> Proof | None:
        """The proof of a program; None if it was not proved."""
        with plain_errors(self._path):
            row = self._connection.execute(
                "SELECT CAST(findings AS BLOB) AS findings, signature FROM proofs"
                " WHERE definition = ? AND digest = ? AND version = ?",
                (definition, digest, __version__),
            ).fetchone()
        if row is None:
            return None
        try:
            stated = definition, digest, __version__, row["findings"]
            if not is_signed(row["signature"], "proof", *stated):
                return None
            return proof_from_fields(json.loads(row["findings"]))
        except (ForeignFile, RecursionError, ValueError):
            return None

    def put(self, definition: str, digest: str, proof: Proof) -> None:
        """Record the finished *proof* of a program."""
        stated = definition, digest, __version__, json.dumps(proof_to_fields(proof))
        with plain_errors(self._path):
            self._connection.execute(
                "INSERT OR REPLACE INTO proofs VALUES (?, ?, ?, ?, ?)",
                (*stated, sign("proof", *stated)),
            )
