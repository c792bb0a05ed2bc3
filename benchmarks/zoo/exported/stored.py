"""Models without their weights: the graph, and how the weights were spread.

A large float initializer keeps its name, type and shape.  In place of its values stand their mean
and standard deviation, from which seeded random ones are drawn.  Tables of few distinct values,
such as masks, and all integers are structure and are kept.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

__all__ = ["FOLDER", "restored", "stored_names", "store"]

FOLDER = Path(__file__).parent / "graphs"
_LARGE = 64
"""Elements of a tensor that counts as weights."""
_MARK = "normal "


def stored_names() -> list[str]:
    """The names of all stored graphs: ``network.exporter``."""
    return sorted(path.name.removesuffix(".onnx.xz") for path in FOLDER.glob("*.onnx.xz"))


def restored(name: str, seed: int = 0) -> ModelProto:
    """The model *name* with weights drawn from *seed*."""
    model: ModelProto = ModelProto.FromString(
        lzma.decompress((FOLDER / f"{name}.onnx.xz").read_bytes())
    )
    for number, tensor in enumerate(_tensors(model)):
        if tensor.doc_string.startswith(_MARK):
            mean, spread = map(float, tensor.doc_string.removeprefix(_MARK).split())
            key = tensor.name or str(number)
            rng = np.random.default_rng([seed, zlib.crc32(key.encode())])
            drawn = mean + spread * rng.standard_normal(tuple(tensor.dims), np.float32)
            kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            tensor.raw_data = numpy_helper.from_array(drawn.astype(kind)).raw_data
            tensor.doc_string = ""
    return model


def store(name: str, model: ModelProto) -> Path:
    """Write *model* without its weights; returns the file."""
    bare = ModelProto()
    bare.CopyFrom(model)
    for tensor in _tensors(bare):
        tensor.doc_string = ""
        if _is_weight(tensor):
            values = numpy_helper.to_array(tensor).astype(np.float64)
            for field in ("raw_data", "float_data", "double_data", "int32_data"):
                tensor.ClearField(field)
            tensor.doc_string = f"{_MARK}{values.mean():.4g} {values.std():.4g}"
    _forget_origins(bare)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.onnx.xz"
    path.write_bytes(lzma.compress(bare.SerializeToString(deterministic=True), preset=9))
    return path


def _is_weight(tensor: TensorProto) -> bool:
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if kind.kind != "f" or np.prod(tensor.dims) < _LARGE:
        return False
    values = numpy_helper.to_array(tensor)
    return len(np.unique(values)) > values.size / 8


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    for graph in _graphs(model.graph):
        yield from graph.initializer
        for node in graph.node:
            yield from (a.t for a in node.attribute if a.type == AttributeProto.TENSOR)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _forget_origins(model: ModelProto) -> None:
    """Drop what tells of the exporting machine: stack traces, and shapes that can be inferred."""
    del model.metadata_props[:]
    model.doc_string = ""
    for graph in (*_graphs(model.graph), *model.functions):
        graph.doc_string = ""
        del graph.metadata_props[:], graph.value_info[:]
        for node in graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
        for info in (*getattr(graph, "input", ()), *getattr(graph, "output", ())):
            if isinstance(info, onnx.ValueInfoProto):
                del info.metadata_props[:]
