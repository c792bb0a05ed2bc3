"""The onnx reference evaluator as an engine: slow, but follows the standard."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx.reference import ReferenceEvaluator

from ansorpy.arrays import Array
from ansorpy.evaluation.engines.protocol import Bounds, refusing
from ansorpy.frontend.onnx.reader import opset_of
from ansorpy.frontend.onnx.reference import operators_of

__all__ = ["Reference"]

_NAME = f"the reference evaluator of onnx {onnx.__version__}"


class Reference:
    """The evaluator of the onnx package; *threads* and *bounds* have no effect on it."""

    version = str(onnx.__version__)
    precision = "the model's own"

    def __init__(
        self, path: str, feeds: Mapping[str, Array], threads: int, bounds: Bounds | None = None
    ) -> None:
        opset = opset_of(onnx.load(path, load_external_data=False))
        with refusing(_NAME):
            self._evaluator = ReferenceEvaluator(path, new_ops=operators_of(opset))
        self._results: dict[str, Array] = {}
        self.feed(feeds)

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Take other inputs."""
        self._feeds = dict(feeds)

    def run(self) -> None:
        """One evaluation."""
        names = list(self._evaluator.output_names)
        with refusing(_NAME):
            results = list(self._evaluator.run(names, self._feeds))
        self._results = dict(zip(names, results, strict=True))

    def outputs(self) -> dict[str, Array]:
        """The arrays the last evaluation returned."""
        return self._results
