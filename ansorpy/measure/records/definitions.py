"""Definitions by content, in the tuning database: many trials share one."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.text.serialize import dag_from_json, dag_to_json
from ansorpy.measure.records.schema import Store, transaction

__all__ = ["KEPT", "DefinitionStore"]

KEPT = 128
"""Number of definitions that are kept in memory after they were read."""


class DefinitionStore(Store):
    """Definitions by their identifier, a digest of their text."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._known: WeakKeyDictionary[ComputeDAG, tuple[str, str]] = WeakKeyDictionary()
        self._read = LRUCache[str, ComputeDAG](KEPT)

    def put(self, dag: ComputeDAG) -> str:
        """Record *dag*; returns its identifier."""
        identifier, text = self._identified(dag)
        self._do(
            # Another user may have written another text under this name.
            "INSERT INTO definitions VALUES (?, ?) ON CONFLICT (id)"
            " DO UPDATE SET dag = excluded.dag WHERE dag != excluded.dag",
            identifier, text,
        )  # fmt: skip
        return identifier

    def identify(self, dag: ComputeDAG) -> str:
        """The identifier of *dag*, recorded or not."""
        return self._identified(dag)[0]

    def get(self, identifier: str) -> ComputeDAG:
        """The recorded definition: one object for all its trials, since analyses are cached by it.

        Raises:
            ForeignFile: It is missing or damaged.
        """
        dag = self._read.get(identifier)
        if dag is None:
            row = self._do("SELECT dag FROM definitions WHERE id = ?", identifier).fetchone()
            dag = self._parsed(identifier, row)
            self._read[identifier] = dag
            self._known[dag] = identifier, row["dag"]
        return dag

    def keep(self, dag: ComputeDAG) -> None:
        """Have :meth:`get` return *dag* for its identifier, which need not be read or analysed."""
        self._read[self.identify(dag)] = dag

    def add_variants(self, task_key: str, definitions: Mapping[str, ComputeDAG]) -> None:
        """Record the names of *definitions*, equivalent definitions of a recorded task."""
        with transaction(self._connection, self.path):
            for name, dag in definitions.items():
                self._do(
                    "INSERT OR IGNORE INTO variants VALUES (?, ?, ?)", task_key, self.put(dag), name
                )

    def variants(self, task_key: str) -> dict[str, str]:
        """Names of the definitions that :meth:`add_variants` recorded for a task, by their ids."""
        rows = self._rows("SELECT definition, name FROM variants WHERE task_key = ?", task_key)
        return {str(row["definition"]): str(row["name"]) for row in rows}

    def _parsed(self, identifier: str, row: sqlite3.Row) -> ComputeDAG:
        try:
            text = row["dag"]
            if hashlib.sha256(text.encode()).hexdigest() != identifier:
                raise ValueError("its text is not the one that was recorded")
            return dag_from_json(text)
        except (AttributeError, ForeignFile, TypeError, ValueError) as error:
            problem = error.message if isinstance(error, ForeignFile) else error
            raise ForeignFile(
                f"{self.path} has no readable definition {identifier[:12]}: {problem}",
                hint="the file is damaged; name another with --db (db= in Python)",
            ) from None

    def _identified(self, dag: ComputeDAG) -> tuple[str, str]:
        """Identifier and text of *dag*, computed once per object."""
        if dag not in self._known:
            text = dag_to_json(dag)
            self._known[dag] = hashlib.sha256(text.encode()).hexdigest(), text
        return self._known[dag]
