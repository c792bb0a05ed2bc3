"""A part of a captured graph as compiled code, which reads and writes tensors in place."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import GraphModule
from torch.multiprocessing.reductions import StorageWeakRef

from ansorpy.api.arguments import UNMEASURED, NetworkArguments, SearchArguments
from ansorpy.api.networks import NetworkSpec
from ansorpy.api.repacking import NetworkPrograms, compile_programs
from ansorpy.errors import AnsorpyError
from ansorpy.frontend.torch.arrays import array_of, tensor_of
from ansorpy.frontend.torch.sizes import extent_of, linear_in
from ansorpy.frontend.torch.translate import Translated, returned_by
from ansorpy.options import those
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.size_ranges import AnySize

__all__ = ["FIRST_SIZE", "GROWTH", "Segment"]

_LOG = logging.getLogger(__name__)
FIRST_SIZE, GROWTH = 512, 8
"""A dimension without a limit gets one at least that large, and so many times that of a call."""


class Segment(torch.nn.Module):
    """A compiled part of a graph.

    It is compiled by the first call, which has the values of parameters, and again when a size
    exceeds what was compiled.  Changed parameters are packed again for the same programs, unless
    their values lead to others: then it is compiled, but nothing is searched.  Threads that call it
    meanwhile wait.

    Args:
        part: The same operators, for torch to run if they cannot be compiled.
        constants: Numbers of the arguments that are parameters or buffers.
        arguments: As of :func:`ansorpy.compile`.
    """

    def __init__(
        self, translated: Translated, part: GraphModule, constants: Collection[int],
        arguments: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__()
        self.model: CompiledModel | None = None
        """The compiled code; None before the first call."""
        self.packed = 0
        """How often its constants were packed."""
        self.compiled = 0
        """How often it was compiled."""
        self.failure = ""
        """Why torch runs this part; empty if it is compiled."""
        self._translated = translated
        self._eager = [part]  # in a list: no submodule of this one
        self._arguments = arguments
        self._constants = [one for one in translated.inputs if one.number in constants]
        self._inputs = [one for one in translated.inputs if one not in self._constants]
        self._is_single = len(returned_by(part.graph)) == 1
        self._types = [node.meta["val"].dtype for node in returned_by(part.graph)]
        self._programs: NetworkPrograms | None = None
        self._state: list[tuple[int, int, int]] = []
        self._storages: list[StorageWeakRef] = []
        self._limits = {name: limit for name, (_, limit) in translated.dims.items()}
        self._places = _places(translated, part)
        self._lock = Lock()

    def __repr__(self) -> str:
        count = sum(node.op == "call_function" for node in self._eager[0].graph.nodes)
        state = "run by torch" if self.failure else f"compiled {self.compiled} times"
        return f"<Segment {self._translated.model.graph.name}: {count} operators, {state}>"

    @property
    def constant_names(self) -> set[str]:
        """The inputs whose values are constant."""
        return {one.name for one in self._constants}

    @property
    def dims(self) -> dict[str, AnySize]:
        """The ranges of the dimensions that are compiled."""
        return {
            name: (low, max(low, self._limits[name] or FIRST_SIZE))
            for name, (low, _) in self._translated.dims.items()
        }

    def forward(self, *args: Any) -> Any:
        """The results for *args*: tensors, or one tensor."""
        with self._lock:
            model = self._model_for(args)
        if model is None:
            return self._eager[0](*args)
        feeds = {one.name: _fed(args[one.number], one.kind) for one in self._inputs}
        arrays = model.run(None, feeds)
        found = [tensor_of(a, dtype) for a, dtype in zip(arrays, self._types, strict=True)]
        return found[0] if self._is_single else tuple(found)

    def _model_for(self, args: Sequence[Any]) -> CompiledModel | None:
        """The compiled code, with the constants and for the sizes of *args*; None if torch runs."""
        if self.failure:
            return None
        state = [_state(args[one.number]) for one in self._constants]
        grown = self._grown(args)
        if self.model is None or state != self._state or grown:
            if not self._packed(args, is_new=self.model is None or grown):
                return None
            storages = [args[one.number].untyped_storage() for one in self._constants]
            self._state, self._storages = state, [*map(StorageWeakRef, storages)]
        return self.model

    def _grown(self, args: Sequence[Any]) -> bool:
        """Raise the limits that a size of this call exceeds; returns whether one does."""
        grown = False
        for place in self._places:
            size = place.size(args)
            limit, stated = self._limits[place.name], self._translated.dims[place.name][1]
            if stated is None and (limit is None or size > limit):
                above = GROWTH * (1 << (size - 1).bit_length())
                self._limits[place.name] = max(FIRST_SIZE, above)
                grown = grown or limit is not None
        return grown

    def _packed(self, args: Sequence[Any], *, is_new: bool) -> bool:
        """Pack the constants; if that fails, say so, and let torch run the part from now on.

        Args:
            is_new: Whether programs are searched for; otherwise there are some, which are kept.
        """
        constants = {one.name: array_of(args[one.number]) for one in self._constants}
        try:
            kept = None if is_new else self._programs
            self.model = None if kept is None else kept.with_constants(constants)
            if self.model is None:
                self._compile(constants, searches=is_new)
        except AnsorpyError as error:
            self.failure = error.message
            _LOG.warning("torch runs a part of the network that is not compiled: %s", error)
            return False
        self.packed += 1
        return True

    def _compile(self, constants: Mapping[str, NDArray[Any]], *, searches: bool) -> None:
        given = {"threads": torch.get_num_threads(), **self._arguments}
        if not searches:
            given |= UNMEASURED
        network = those(NetworkArguments, given) | {"dims": self.dims, "constants": constants}
        spec = NetworkSpec(self._translated.model, **network)
        self.model, self._programs = compile_programs(spec, **those(SearchArguments, given))
        self.compiled += 1


class _Place(NamedTuple):
    """Where calls tell a dimension: argument *number*, or an axis of it, is ``scale * d + offset``.

    Args:
        axis: That of a tensor; None if the argument is a number.
    """

    name: str
    number: int
    axis: int | None
    scale: int
    offset: int

    def size(self, args: Sequence[Any]) -> int:
        """The dimension's size in a call with these arguments."""
        given = args[self.number]
        extent = given if self.axis is None else given.shape[self.axis]
        return (int(extent) - self.offset) // self.scale


def _places(translated: Translated, part: GraphModule) -> list[_Place]:
    """Where calls tell each dimension: extents that are one, or linear in one alone."""
    found = []
    values = [node.meta["val"] for node in part.graph.nodes if node.op == "placeholder"]
    for one in translated.inputs:
        value = values[one.number]
        axes = range(value.dim()) if one.kind == "tensor" else [None]
        for axis in axes:
            extent: Any = extent_of(value if axis is None else value.shape[axis])
            told = (extent, 1, 0) if str(extent) in translated.dims else linear_in(extent)
            if told is not None and str(told[0]) in translated.dims:
                found.append(_Place(str(told[0]), one.number, axis, *told[1:]))
    return found


def _state(tensor: torch.Tensor) -> tuple[int, int, int]:
    """What differs once someone has changed *tensor*; inference tensors have no versions.

    The address of memory may come back with other contents, but not the number of its storage while
    there is a weak reference to that.
    """
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.untyped_storage()._cdata, tensor.data_ptr(), version


def _fed(value: Any, kind: str) -> NDArray[Any]:
    """The array for an argument; that for a size has no contents."""
    if kind == "tensor":
        return array_of(value)
    return np.empty(value, np.bool_) if kind == "size" else np.asarray([value], np.int64)
