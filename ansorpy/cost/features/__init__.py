"""The features of programs: one row per statement, as in Ansor, for whole populations at once.

To add a feature, write a :class:`FeatureGroup` and list it in :data:`FEATURES`; the names, the
width and the version stored with models follow from that tuple.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.features.buffers import BUFFERS
from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.features.intensity import INTENSITY
from ansorpy.cost.features.statement import ALLOCATION, ANNOTATIONS, GPU, OPERATIONS, OUTER
from ansorpy.cost.nest_view import LeafView

__all__ = [
    "FEATURES", "FEATURE_NAMES", "FEATURE_REVISION", "FEATURE_VERSION", "FeatureGroup", "extract",
    "extract_all",
]  # fmt: skip

FEATURES: tuple[FeatureGroup, ...] = (
    OPERATIONS,
    ANNOTATIONS,
    GPU,
    BUFFERS,
    INTENSITY,
    ALLOCATION,
    OUTER,
)

FEATURE_NAMES: tuple[str, ...] = tuple(name for group in FEATURES for name in group.names)

FEATURE_REVISION = 5
"""Increase it when an existing feature is computed differently."""

FEATURE_VERSION: str = hashlib.sha256(
    "\n".join((*FEATURE_NAMES, str(FEATURE_REVISION))).encode()
).hexdigest()[:12]
"""Changes whenever a feature is added, dropped, moved or computed differently; models stored with
another version are refused."""


def extract(view: LeafView) -> Floats:
    """Features of one statement for all its settings, ``[n, len(FEATURE_NAMES)]``."""
    return extract_all([view])


def extract_all(views: Sequence[LeafView]) -> Floats:
    """Features of all statements, concatenated: ``[sum of n, len(FEATURE_NAMES)]``.

    Values are ``log2(1 + x)``, which leaves flags at 0 or 1.
    The matrix is column-major, the order in which it is computed and which LightGBM expects.
    Source: TVM's per-store features (OSDI'20 §5.2, appendix B).
    """
    found = np.empty((len(FEATURE_NAMES), sum(view.rows for view in views)))
    start = 0
    for view in views:
        _fill(found[:, start : start + view.rows], view)
        start += view.rows
    return found.T


def _fill(found: Floats, view: LeafView) -> None:
    """Write the features of one statement, one row each."""
    values = [value for group in FEATURES for value in group.compute(view)]
    at = 0
    for varies, run in groupby(values, key=_varies):
        some = list(run)
        block = found[at : at + len(some)]
        at += len(some)
        if varies:
            for row, value in zip(block, some, strict=True):
                row[:] = value
            np.add(block, 1, out=block)
            np.log2(block, out=block)
        else:
            block[:] = np.log2(1 + np.array(some))[:, None]


def _varies(value: Floats | float) -> bool:
    return isinstance(value, np.ndarray)
