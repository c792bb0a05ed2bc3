"""Summary of a model's outputs: shape, type, range, and whether they are finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ansorpy.arrays import Array
from ansorpy.evaluation.tables import Table

__all__ = ["outputs_json", "outputs_table"]


def outputs_json(outputs: Mapping[str, Array]) -> list[dict[str, Any]]:
    """One JSON-serializable object per output, in which statistics that are not finite are null."""
    return [{"name": name, **_facts(array)} for name, array in outputs.items()]


def outputs_table(outputs: Mapping[str, Array]) -> Table:
    """One row per output."""
    rows = []
    for name, array in outputs.items():
        facts = _facts(array)
        shape = "x".join(map(str, array.shape)) or "scalar"
        numbers = ("-" if facts[k] is None else f"{facts[k]:.6g}" for k in ("min", "max", "mean"))
        rows.append((name, shape, facts["dtype"], *numbers, "yes" if facts["finite"] else "NO"))
    heading = ("output", "shape", "type", "min", "max", "mean", "finite")
    return Table("", heading, tuple(rows), frozenset({"min", "max", "mean"}))


def _facts(array: Array) -> dict[str, Any]:
    values = array.astype(np.float64)
    finite = bool(np.isfinite(values).all())
    usable = finite and values.size > 0
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "min": float(values.min()) if usable else None,
        "max": float(values.max()) if usable else None,
        "mean": float(values.mean()) if usable else None,
        "finite": finite,
    }
