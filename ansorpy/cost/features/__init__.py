"""The features of a program: a row a statement, as in Ansor, for whole populations at once.

To add a feature, write a :class:`FeatureGroup` and name it in :data:`FEATURES`; the names, the
width and the version stored with models follow from that tuple.
"""

from __future__ import annotations

import hashlib

import numpy as np

from ansorpy.cost.features.buffers import BUFFERS
from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.features.intensity import INTENSITY
from ansorpy.cost.features.statement import ALLOCATION, ANNOTATIONS, GPU, OPERATIONS, OUTER
from ansorpy.cost.view import Floats, LeafView

__all__ = ["FEATURES", "FEATURE_NAMES", "FEATURE_VERSION", "FeatureGroup", "extract"]

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

FEATURE_VERSION: str = hashlib.sha256("\n".join(FEATURE_NAMES).encode()).hexdigest()[:12]
"""Changes whenever a feature is added, dropped or moved; a stored model is refused then."""

_FLAGS = np.array([name in group.flags for group in FEATURES for name in group.names])


def extract(view: LeafView) -> Floats:
    """Features of one statement for all candidates, ``[n, len(FEATURE_NAMES)]``.

    Numbers are ``sign(x) * log2(1 + |x|)``; flags stay 0 or 1.
    Source: TVM's per-store features (OSDI'20 §5.2, appendix B).
    """
    values = np.stack([value for group in FEATURES for value in group.compute(view)], axis=1)
    return np.where(_FLAGS, values, np.sign(values) * np.log2(1 + np.abs(values)))
