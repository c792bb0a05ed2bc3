"""The onnx reference evaluator as an engine: slow, but follows the standard."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx.reference import ReferenceEvaluator

from ansorpy.report.engines.protocol import Array

__all__ = ["Reference"]


class Reference:
    """The evaluator of the onnx package; *threads* has no effect on it."""

    version = str(onnx.__version__)

    def __init__(self, path: str, feeds: Mapping[str, Array], threads: int) -> None:
        self._evaluator = ReferenceEvaluator(path)
        self._feeds = dict(feeds)
        self._results: dict[str, Array] = {}

    def run(self) -> None:
        """One evaluation."""
        names = list(self._evaluator.output_names)
        results = list(self._evaluator.run(names, self._feeds))
        self._results = dict(zip(names, results, strict=True))

    def outputs(self) -> dict[str, Array]:
        """The arrays the last evaluation returned."""
        return self._results
