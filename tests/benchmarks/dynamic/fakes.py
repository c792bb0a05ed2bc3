"""Stand-ins for our libraries: files whose networks onnxruntime runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from ansorpy.errors import UsageError
from ansorpy.evaluation.engines.protocol import (
    FedEngine,
    Shapes,
    SizedEngine,
    open_peer,
    open_peer_at,
)
from ansorpy.runtime.ports import Port
from benchmarks.dynamic.libraries import LibrarySettings
from benchmarks.dynamic.result import Library
from benchmarks.dynamic.steps import OrtSteps
from benchmarks.dynamic.suite import DynamicModel

__all__ = [
    "Session",
    "any_size_library",
    "one_size_library",
    "our_steps",
    "ours",
    "ours_at",
    "refused",
]


def any_size_library(model: DynamicModel, settings: LibrarySettings) -> Library:
    path = settings.network(model)
    return Library(file=str(path), size=None, tuning_s=9.0, trials=5, bytes=path.stat().st_size)


def one_size_library(
    model: DynamicModel, size: int, trials: int, settings: LibrarySettings
) -> Library:
    """The network with a fixed size."""
    network = onnx.load(settings.network(model))
    for value in network.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = size
    path = settings.folder / f"{model.name}.{size}.onnx"
    onnx.save(network, path)
    return Library(file=str(path), size=size, tuning_s=3.0, trials=trials,
                   bytes=path.stat().st_size)  # fmt: skip


def refused(model: DynamicModel, settings: LibrarySettings) -> Library:
    raise UsageError(f"{model.name} cannot be compiled")


def ours(path: str, *, seed: int, arguments: Mapping[str, Any]) -> FedEngine:
    return open_peer("onnxruntime", path, threads=arguments["threads"], seed=seed)


def ours_at(
    path: str, *, seed: int, arguments: Mapping[str, Any], sizes: Sequence[Shapes]
) -> SizedEngine:
    return open_peer_at("onnxruntime", path, threads=arguments["threads"], seed=seed, sizes=sizes)


class Session:
    """A network with the interface of :class:`ansorpy.runtime.model.Model`.

    ``calls`` has the shapes of each call's inputs by name.
    """

    def __init__(self, path: str | Path) -> None:
        self._session = onnxruntime.InferenceSession(str(path))
        self.calls: list[dict[str, tuple[int, ...]]] = []

    def get_inputs(self) -> list[Port]:
        return [_port(value) for value in self._session.get_inputs()]

    def get_outputs(self) -> list[Port]:
        return [_port(value) for value in self._session.get_outputs()]

    def with_room(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        return dict(feeds)

    def run(
        self, names: Sequence[str] | None, feeds: Mapping[str, Any],
        outputs: Sequence[Any] | None = None, *, threads: int | None = None,
    ) -> list[Any]:  # fmt: skip
        """Compute *names*, into the memory of *outputs* if given."""
        self.calls.append({name: np.shape(value) for name, value in feeds.items()})
        found = self._session.run(names, dict(feeds))
        for value, into in zip(found, outputs or (), strict=outputs is not None):
            into[...] = value
        return list(outputs or found)


def _port(value: Any) -> Port:
    kind: Callable[[str], np.dtype[Any]] = np.dtype
    return Port(value.name, tuple(value.shape), kind("i8" if "int64" in value.type else "f4"))


def our_steps(path: str, **given: Any) -> OrtSteps:
    return OrtSteps(path, **given)
