"""Networks of the suite by name, as ONNX files with seeded random weights, and users' own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from ansorpy.errors import UsageError
from benchmarks.zoo import WRITTEN
from benchmarks.zoo.files import saved_once
from benchmarks.zoo.light import NAMES, light_model

__all__ = ["ALL", "Entry", "with_batch"]


@dataclass(frozen=True)
class Entry:
    """A network at a batch size; *given* is its file if it is not in the suite."""

    name: str
    batch: int = 1
    given: Path | None = None

    @staticmethod
    def parse(text: str, batch: int = 1) -> Entry:
        """Parse ``resnet50``, ``resnet50.b16`` or ``a/file.onnx``; *batch* is the default.

        Raises:
            UsageError: There is no such network.
        """
        if text.endswith(".onnx"):
            return Entry._of_file(Path(text), batch)
        name, found, number = text.partition(".b")
        if name not in (*NAMES, *WRITTEN) or (found and not number.isdecimal()):
            raise UsageError(f"no network {text!r}", hint=f"choose from {', '.join(ALL)}")
        return Entry(name, int(number) if found else batch)

    @staticmethod
    def _of_file(path: Path, batch: int) -> Entry:
        if not path.is_file():
            raise UsageError(f"no file {path}", hint="give the path of an .onnx file that exists")
        if batch != 1:
            raise UsageError(f"the batch of {path} cannot be changed", hint="leave out --batch")
        return Entry(path.stem, given=path)

    @property
    def label(self) -> str:
        return self.name if self.batch == 1 else f"{self.name}.b{self.batch}"

    def model(self, seed: int) -> onnx.ModelProto:
        """The network with weights drawn from *seed*."""
        if self.name in WRITTEN:
            return WRITTEN[self.name](self.batch, seed)
        return with_batch(light_model(self.name, seed), self.batch)

    def file(self, seed: int, folder: Path) -> Path:
        """Path of :meth:`model` in *folder*, written if missing, or of the user's file."""
        if self.given is not None:
            return self.given
        return saved_once(folder / f"{self.label}.{seed}.onnx", lambda: self.model(seed))


LARGE_BATCH = 16
ALL: Sequence[str] = (
    *NAMES,
    *WRITTEN,
    *(f"{name}.b{LARGE_BATCH}" for name in ("resnet50", "mobilenet_v2", "bert_base")),
)
"""Networks measured by default."""


def with_batch(model: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    """Copy *model*, which was made for one image, for a *batch* of images.

    The batch is the first dimension of inputs and outputs, and a leading 1 in constant target
    shapes of reshapes.

    Raises:
        UsageError: The model was not made for one image, or its shapes contradict the batch.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    held = {tensor.name: tensor for tensor in graph.initializer}
    for value in (*graph.input, *graph.output):
        first = value.type.tensor_type.shape.dim[0]
        if value.name not in held and first.dim_value != 1:
            raise UsageError(f"{value.name} of {graph.name} has no batch of 1")
        if value.name not in held:
            first.dim_value = batch
    for name in {node.input[1] for node in graph.node if node.op_type == "Reshape"} & set(held):
        shape = np.array(numpy_helper.to_array(held[name]))
        if shape[0] == 1:
            shape[0] = batch
            held[name].CopyFrom(numpy_helper.from_array(shape, name))
    del graph.value_info[:]
    try:
        onnx.shape_inference.infer_shapes(changed, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        raise UsageError(f"{graph.name} cannot have a batch of {batch}: {error}") from None
    return changed
