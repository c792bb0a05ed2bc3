"""The interface by which onnx's test runner, and programs that use several runtimes, run models.

>>> import numpy as np
>>> from onnx import helper
>>> from ansorpy import onnx_backend
>>> node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
>>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
>>> onnx_backend.run_node(node, [x, np.array([1])])[0]
array([ 3., 12.], dtype=float32)

A model is compiled without tuning.  Values of inputs that decide shapes or attributes must be known
then: the first call with new ones compiles the model for these, and later calls reuse it.  If
nothing would be left to compute then, sizes get bounds instead; a call that exceeds them compiles
the model for larger ones.  Sizes that the model leaves open are those of the call, if it cannot be
compiled for a range of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.backend.base import Backend, BackendRep

from ansorpy.api.networks import compile
from ansorpy.arrays import Array
from ansorpy.config import DEVICE
from ansorpy.errors import MissingDependency, OutOfBounds, UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.sequence_inputs import is_listed, tensor_names
from ansorpy.frontend.onnx.shapes import network_inputs
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.target import Target

__all__ = [
    "AnsorpyBackend", "Prepared", "is_compatible", "prepare", "run_model", "run_node",
    "supports_device",
]  # fmt: skip

_Shapes = list[tuple[int, ...]] | None
"""The shapes of the tensors in a sequence or optional value, which may have none."""
_Key = tuple[object, ...]
"""The values of the inputs that are known when a model is compiled, and the shapes in sequences."""
_TARGETS = {"CPU": "host", "CUDA": "cuda"}
"""The targets of devices."""
_FIRST_BOUND = 16
"""Of each size: little memory, even if a tensor has four of them."""
_GROWTH = 8
"""Bounds of computed sizes grow by this factor, so that few calls compile."""
_LARGEST_BOUND = 1 << 24
"""Larger sizes are refused: there would be no memory for all sizes within the bounds."""


@dataclass
class Prepared(BackendRep):
    """A model that is ready to run.

    Args:
        pinned: The inputs whose values must be known when it is compiled.
        bounds: Tensors that have sizes, and what these are at most, as :func:`ansorpy.compile`
            takes it.
        fixes_shapes: Whether it is compiled for the shapes of a call, because it cannot be for all
            that it allows.
    """

    model: ModelProto
    arguments: Mapping[str, Any]
    pinned: tuple[str, ...] = ()
    bounds: dict[str, list[int]] = field(default_factory=dict)
    fixes_shapes: bool = False
    _compiled: dict[_Key, CompiledModel] = field(default_factory=dict)

    @property
    def versions(self) -> int:
        """How often it has been compiled, for different values of :attr:`pinned`, since the bounds
        grew."""
        return len(self._compiled)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """The outputs for *inputs*: arrays in the order of the model's inputs, or by name.

        Sequences are lists of arrays, and an optional value without one is None.

        Raises:
            UnsupportedModel: Some nodes cannot be compiled; its table lists all of them.
            UsageError: An input is missing, unknown, or of another shape or type.
        """
        feeds, shapes = self._tensors(self._by_name(inputs))
        made = self._results(feeds, shapes)
        return tuple(_output(info, made) for info in self.model.graph.output)

    def _results(
        self, feeds: Mapping[str, Array], shapes: Mapping[str, _Shapes]
    ) -> dict[str, Array]:
        """The output tensors by name."""
        while True:
            compiled = self._for(feeds, shapes)
            rest = {name: array for name, array in feeds.items() if name not in self.pinned}
            try:
                outputs = compiled.run(None, rest)
            except OutOfBounds:
                if not self._grow(feeds):
                    raise
                continue
            return dict(zip((o.name for o in compiled.get_outputs()), outputs, strict=True))

    def learn(self, error: UnsupportedModel) -> bool:
        """Whether more inputs that are known, or sizes with bounds, may avoid *error*; note them.

        There are bounds if all inputs would be known otherwise.  If neither helps, sizes that the
        model leaves open are those of a call.
        """
        names = {info.name for info in network_inputs(self.model)}
        bounds = {name: [_FIRST_BOUND] for name in error.bounds if name not in self.bounds}
        pinned = dict.fromkeys((*self.pinned, *error.needs))
        if bounds and names <= pinned.keys():
            self.pinned, self.bounds = (), self.bounds | bounds
        elif len(pinned) > len(self.pinned):
            self.pinned = tuple(pinned)
        elif not self.fixes_shapes and any(map(_is_open, network_inputs(self.model))):
            self.fixes_shapes = True
        else:
            return False
        self._compiled = {}
        return True

    def _grow(self, feeds: Mapping[str, Array]) -> bool:
        """Let the bounds include the sizes in *feeds*, with some room; whether they have grown.

        Those of computed sizes become larger, too.
        """
        grown = {}
        for name, most in self.bounds.items():
            if name in feeds:
                sizes = feeds[name].reshape(-1).tolist()
                each = most if len(most) > 1 else most * len(sizes)
                grown[name] = [max(n, _rounded(size)) for n, size in zip(each, sizes, strict=True)]
            else:
                grown[name] = [_GROWTH * n for n in most]
        if grown == self.bounds or max(n for most in grown.values() for n in most) > _LARGEST_BOUND:
            return False
        self.bounds, self._compiled = grown, {}
        return True

    def _tensors(self, feeds: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, _Shapes]]:
        """All tensors in *feeds* by name, and the shapes of those in sequences and optionals."""
        kinds = {info.name: info.type for info in network_inputs(self.model)}
        arrays: dict[str, Array] = {}
        shapes: dict[str, _Shapes] = {}
        for name, value in feeds.items():
            if name not in kinds or not is_listed(kinds[name]):
                arrays[name] = np.asarray(value)
                continue
            if value is None:
                shapes[name] = None
                continue
            parts = list(map(np.asarray, value if isinstance(value, list) else [value]))
            arrays |= zip(tensor_names(name, len(parts)), parts, strict=True)
            shapes[name] = [part.shape for part in parts]
        return arrays, shapes

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        names = [info.name for info in network_inputs(self.model)]
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        if len(given) != len(names):
            raise UsageError(f"{len(given)} inputs were given, but the model takes {len(names)}")
        return dict(zip(names, given, strict=True))

    def _for(self, feeds: Mapping[str, Array], shapes: Mapping[str, _Shapes]) -> CompiledModel:
        """The code for the pinned values in *feeds*; more may turn out to be needed."""
        while True:
            arguments = self._shaped(feeds, shapes)
            missing = [name for name in self.pinned if name not in feeds]
            if missing:
                raise UsageError(f"the model was not given input {missing[0]!r}")
            values = {name: feeds[name] for name in self.pinned}
            known = tuple((value.tobytes(), value.shape) for value in values.values())
            key = (known, str(arguments.get("shapes")))
            if key in self._compiled:
                return self._compiled[key]
            try:
                made = compile(self.model, constants=values, bounds=self.bounds, **arguments)
            except UnsupportedModel as error:
                if not self.learn(error):
                    raise
                continue
            self._compiled[key] = made
            return made

    def _shaped(self, feeds: Mapping[str, Array], shapes: Mapping[str, _Shapes]) -> dict[str, Any]:
        """The arguments with all *shapes* that are fixed."""
        fixed: dict[str, Any] = dict(shapes)
        if self.fixes_shapes:
            names = {info.name for info in network_inputs(self.model) if _is_open(info)}
            fixed |= {name: feeds[name].shape for name in names - {*self.pinned} if name in feeds}
        if not fixed:
            return dict(self.arguments)
        return {**self.arguments, "shapes": {**self.arguments.get("shapes", {}), **fixed}}


class AnsorpyBackend(Backend):
    """Compiles models with ansorpy, without tuning unless *arguments* say otherwise."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether :meth:`prepare` takes *model*: it can be compiled, perhaps once inputs are known.

        Raises:
            ForeignFile: It is not a valid model.
        """
        if not cls.supports_device(device):
            return False
        try:
            ready = cls.prepare(model, device)
        except UnsupportedModel:
            return False
        shapes = _stand_ins(model, fixes_shapes=ready.fixes_shapes)
        try:
            if shapes:
                load(model, shapes=shapes)
        except UnsupportedModel as error:
            return bool(error.needs or error.bounds)
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Import *model*; its ``pinned`` inputs must be known when it is compiled.

        Args:
            kwargs: As of :func:`ansorpy.compile`; by default nothing is measured.

        Raises:
            ForeignFile: It is not a valid model.
            UnsupportedModel: Some nodes cannot be compiled; its table lists all of them.
            UsageError: There is no such device.
        """
        if not cls.supports_device(device):
            raise UsageError(
                f"models do not run on {device!r} here", hint="use device CPU, or CUDA with a GPU"
            )
        ready = Prepared(model, {"effort": "none", "target": _TARGETS[_kind(device)], **kwargs})
        if any(is_listed(info.type) for info in network_inputs(model)):
            return ready
        try:
            load(model)
        except UnsupportedModel as error:
            if not ready.learn(error):
                raise
        return ready

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Array, ...]:
        """The outputs of *model* for *inputs*.

        Raises:
            ForeignFile, UnsupportedModel, UsageError: As :meth:`prepare` and :meth:`Prepared.run`.
        """
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None, **kwargs: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        """The outputs of one *node* for *inputs*, arrays in the order of its inputs.

        Args:
            outputs_info: Types and shapes of the outputs; inferred if missing.
            kwargs: ``opset_version``, or arguments of :func:`ansorpy.compile`.

        Raises:
            ForeignFile, UnsupportedModel, UsageError: As :meth:`run_model`.
        """
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        arrays = [np.asarray(value) for value in given]
        names = [name for name in node.input if name]
        infos = [_info(name, a) for name, a in zip(names, arrays, strict=True)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        if outputs_info is not None:
            outputs = [
                helper.make_tensor_value_info(
                    o.name, helper.np_dtype_to_tensor_dtype(np.dtype(t)), s
                )
                for o, (t, s) in zip(outputs, outputs_info, strict=True)
            ]
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        graph = helper.make_graph([node], node.op_type, infos, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.run_model(onnx.shape_inference.infer_shapes(model), arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on *device*: ``CPU``, or ``CUDA`` if there is a GPU to use.

        A number after a colon may name only the GPU that is used (``ANSORPY_DEVICE``).
        """
        kind, number = _kind(device), device.partition(":")[2]
        if kind != "CUDA" or number not in ("", str(DEVICE.get() or 0)):
            return kind == "CPU"
        with suppress(MissingDependency):
            return bool(Target.parse("cuda").gpus())
        return False


def _kind(device: str) -> str:
    return device.partition(":")[0].upper()


def _output(info: ValueInfoProto, made: Mapping[str, Array]) -> Any:
    """The output *info* of a model, all of whose tensors are *made*."""
    if not is_listed(info.type) or info.name in made:
        return made[info.name]
    found = [made[name] for name in tensor_names(info.name, len(made)) if name in made]
    kind = info.type.optional_type.elem_type if info.type.HasField("optional_type") else info.type
    return found if found or kind.HasField("sequence_type") else None


def _is_open(info: ValueInfoProto) -> bool:
    """Whether *info* is a tensor with sizes that are not stated."""
    kind = info.type.tensor_type
    is_stated = kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim)
    return info.type.HasField("tensor_type") and not is_stated


def _stand_ins(model: ModelProto, *, fixes_shapes: bool) -> dict[str, Any]:
    """Shapes that a call might give: of what *model* takes as sequences, and of what is open if it
    *fixes_shapes*; none if an input is optional, as what it may hold depends on the call."""
    inputs = network_inputs(model)
    if any(info.type.HasField("optional_type") for info in inputs):
        return {}
    shapes: dict[str, Any] = {i.name: [(1,)] for i in inputs if i.type.HasField("sequence_type")}
    if fixes_shapes:
        ranked = (i for i in inputs if _is_open(i) and i.type.tensor_type.HasField("shape"))
        shapes |= {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in ranked}
    return shapes


def _rounded(size: float) -> int:
    """The least power of two that is not below *size*."""
    return 1 << max(ceil(size) - 1, 0).bit_length()


def _info(name: str, array: Array) -> ValueInfoProto:
    kind: TensorProto.DataType = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


is_compatible = AnsorpyBackend.is_compatible
prepare = AnsorpyBackend.prepare
run_model = AnsorpyBackend.run_model
run_node = AnsorpyBackend.run_node
supports_device = AnsorpyBackend.supports_device
