"""Reading, checking and upgrading of ONNX models from files and objects."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import EncodeError
from onnx import (
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
    external_data_helper,
    helper,
    inliner,
    numpy_helper,
)

from ansorpy.errors import ForeignFile, UnsupportedModel, UsageError
from ansorpy.frontend.onnx.local_functions import complete
from ansorpy.frontend.onnx.nodes import STANDARD, all_nodes
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Shape

__all__ = [
    "array_of", "check", "copied", "demand_computed", "demand_consistent",
    "demand_own_texts", "opset_of", "read", "read_file", "upgraded", "without_weights",
]  # fmt: skip

_OLDEST_OPSET = 7
"""The oldest operator set that importers support; older models are converted."""

_CONVERT_TO = 13

_LARGE = 1 << 16
"""An initializer with more elements is a weight; those that hold shapes have only a few."""


_ONLY_ONNXRUNTIME = {
    "GroupNormalization": range(18, 21),  # withdrawn, with other scales, by operator set 21
    "LayerNormalization": range(17),  # its optimiser writes it into models of older sets
    "ThresholdedRelu": range(10),
}
"""Operators of the operator sets in which onnxruntime has them and onnx does not."""

_EXPORT_AGAIN = "export it again; `python -m onnx.checker` reports the same fault"
_IN_FULL = (
    "export it again; onnx.checker.check_model(model, full_check=True) reports the same fault"
)


def read(source: str | Path | ModelProto) -> ModelProto:
    """The model in a file (external data included) or the object itself, unchecked.

    Functions that the model defines are replaced by their nodes.

    Raises:
        ForeignFile: The file cannot be read or does not contain an ONNX model.
    """
    if isinstance(source, ModelProto):
        return _inlined(_whole(source, "the model object"), is_ours=False)
    path = Path(source)
    return _with_weights(_inlined(_light(path), is_ours=True), path)


def read_file(path: Path) -> ModelProto:
    """The model in a file as it is, external data included, unchecked.

    Raises:
        ForeignFile: The file cannot be read or does not contain an ONNX model.
    """
    return _with_weights(_light(path), path)


def _with_weights(model: ModelProto, path: Path) -> ModelProto:
    """*model* itself, with the weights that the file *path* keeps in others."""
    try:
        external_data_helper.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ForeignFile(
            f"the weights of {path} cannot be read: {_reason(error)}",
            hint="they are in separate files; copy those too, under the names given in the model",
        ) from None
    return model


def _light(path: Path) -> ModelProto:
    """The model in the file *path*, without weights that are in other files."""
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except MemoryError:
        raise
    except Exception:  # onnx chooses a format by the suffix, and each has errors of its own
        raise _not_onnx(str(path), "it has another format, or was cut short") from None
    return _whole(model, str(path))


def _whole(model: ModelProto, what: str) -> ModelProto:
    """*model* itself; refuses an incomplete one, calling it *what* in the message."""
    if not model.ir_version:
        raise _not_onnx(what, "it has no format version")
    if not model.graph.output:
        raise _not_onnx(what, "it has no graph with outputs")
    return model


def _not_onnx(what: str, why: str) -> ForeignFile:
    return ForeignFile(
        f"{what} is not an ONNX model: {why}",
        hint="give a .onnx file written by torch.onnx.export or onnx.save; run, bench and verify "
        "also take a library that ansorpy made; a database goes to --db",
    )


def _inlined(model: ModelProto, is_ours: bool) -> ModelProto:
    """*model* with the nodes of its functions in place of calls to them.

    It is changed if *is_ours*, and copied if a caller holds it.
    """
    if not model.functions:
        return model
    try:
        model = model if is_ours else copied(model)
        complete(model)
        inlined = inliner.inline_local_functions(model)
    except EncodeError:
        raise UnsupportedModel(
            "the model object defines functions, which onnx can only inline in up to 2 GiB",
            hint="give the path of a file written by onnx.save(save_as_external_data=True)",
        ) from None
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise _not_valid(error) from None
    return _converted(inlined) if inlined.functions else inlined


def _converted(model: ModelProto) -> ModelProto:
    """*model* with functions for other operator sets converted to its own, and inlined.

    Raises:
        UnsupportedModel: onnx cannot convert them.
    """
    try:
        typed = onnx.shape_inference.infer_shapes(model)  # conversion needs all types
        return inliner.inline_local_functions(typed, convert_version=True)
    except Exception as error:  # onnx's converter raises whatever its C++ adapters throw
        raise UnsupportedModel(
            f"onnx cannot convert the functions that the model defines to its operator set "
            f"{opset_of(model)}: {_reason(error)}",
            hint="export all functions for one operator set",
        ) from None


def _not_valid(error: Exception, hint: str = _EXPORT_AGAIN) -> ForeignFile:
    return ForeignFile(f"the ONNX model is not valid: {_reason(error)}", hint=hint)


def array_of(tensor: TensorProto | SparseTensorProto) -> Array:
    """The values of an initializer; a sparse one is expanded.

    Raises:
        ForeignFile: Its number of bytes does not match its shape and type.
    """
    is_sparse = isinstance(tensor, SparseTensorProto)
    try:
        return _dense(tensor) if is_sparse else numpy_helper.to_array(tensor)
    except (ValueError, TypeError, IndexError) as error:
        name = tensor.values.name if is_sparse else tensor.name
        raise ForeignFile(
            f"the ONNX model is not valid: initializer {name}: {_reason(error)}",
            hint="its data were cut short; copy or export them again",
        ) from None


def _dense(tensor: SparseTensorProto) -> Array:
    """The dense array of *tensor*, which stores values with flat or multi-dimensional indices."""
    if tensor.indices.data_type != TensorProto.INT64:
        raise ValueError("its places are not of type int64")
    values, places = map(numpy_helper.to_array, (tensor.values, tensor.indices))
    whole = np.zeros(tuple(tensor.dims), values.dtype)
    whole[tuple(places.T) if places.ndim == 2 else np.unravel_index(places, whole.shape)] = values
    return whole


def opset_of(model: ModelProto, domain: str = "") -> int:
    """The version of an operator set that *model* imports, by default of the standard one.

    That is 1 if it names no operator set at all, as old models do.  If it names only others, it is
    the newest one: then none of its nodes is of this set.
    """
    names = STANDARD if domain == "" else (domain,)
    versions = [o.version for o in model.opset_import if o.domain in names]
    newest = onnx.defs.onnx_opset_version() if domain == "" and model.opset_import else 1
    return max(versions, default=newest)


def check(model: ModelProto) -> None:
    """Run onnx's checker without large weights, so models over 2 GiB pass, and fast.

    Inputs and outputs may omit their shapes, which the caller gives or which can be inferred,
    although the checker does not allow it.

    Raises:
        ForeignFile: The checker rejects the model, or several outputs have the same name.
    """
    try:
        onnx.checker.check_model(_with_shapes(_for_onnx(model)))
    except (onnx.checker.ValidationError, ValueError) as error:
        raise _not_valid(error) from None
    names = [output.name for output in model.graph.output]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:  # the checker allows this, but callers could not tell the outputs apart
        raise _not_valid(ValueError(f"several outputs are named {', '.join(twice)}"))


def _for_onnx(model: ModelProto) -> ModelProto:
    """A copy of *model* without large weights, whose nodes onnx knows or leaves unchecked."""
    light, opset = without_weights(model), opset_of(model)
    others = [n for n in all_nodes(light.graph) if opset in _ONLY_ONNXRUNTIME.get(n.op_type, ())]
    for node in others:
        node.domain = "com.microsoft" if node.domain in STANDARD else node.domain
    if others and all(one.domain != "com.microsoft" for one in light.opset_import):
        light.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return light


def _lacks_shape(info: ValueInfoProto) -> bool:
    return info.type.HasField("tensor_type") and not info.type.tensor_type.HasField("shape")


def _with_shapes(model: ModelProto) -> ModelProto:
    """*model* itself, after giving inputs and outputs without a shape that of a scalar."""
    for info in filter(_lacks_shape, (*model.graph.input, *model.graph.output)):
        info.type.tensor_type.shape.SetInParent()
    return model


def without_weights(model: ModelProto) -> ModelProto:
    """A copy of *model* in which large initializers are inputs.

    onnx can only check, and infer shapes of, models of at most 2 GiB.
    """
    graph = model.graph
    held = (t for t in graph.initializer if t.data_location != TensorProto.EXTERNAL)
    large = {t.name: t for t in held if math.prod(t.dims) > _LARGE}
    given = {info.name for info in graph.input}
    weights = [
        helper.make_tensor_value_info(t.name, t.data_type, t.dims)
        for t in large.values()
        if t.name not in given
    ]
    kept = [t for t in graph.initializer if t.name not in large]
    return copied(model, inputs=[*graph.input, *weights], initializers=kept)


def copied(
    model: ModelProto, *, nodes: Sequence[NodeProto] | None = None,
    inputs: Sequence[ValueInfoProto] | None = None,
    initializers: Sequence[TensorProto] | None = None,
) -> ModelProto:  # fmt: skip
    """A copy of *model* with other *nodes*, *inputs* and *initializers*, if these are given.

    It is made part by part: protobuf copies a whole message of up to 2 GiB only.
    """
    graph = model.graph
    made = helper.make_graph(
        graph.node if nodes is None else nodes, graph.name,
        graph.input if inputs is None else inputs, graph.output,
        graph.initializer if initializers is None else initializers,
        value_info=graph.value_info, sparse_initializer=graph.sparse_initializer,
    )  # fmt: skip
    return helper.make_model(
        made, ir_version=model.ir_version, opset_imports=model.opset_import,
        functions=model.functions,
    )  # fmt: skip


def demand_consistent(model: ModelProto, shapes: Mapping[str, Shape]) -> None:
    """Refuse *model* if some node has operands or attributes that its operator does not take.

    Importers rely on conditions that onnx's strict shape inference checks.  The check takes as long
    as the import, so it runs only after an importer has failed.

    Args:
        shapes: Those of the inputs, which the model may leave open.

    Raises:
        ForeignFile: There is such a node, whatever shapes the inputs have.
        UsageError: There is one if the inputs have these *shapes*.
    """
    light = _for_onnx(model)
    fault = _fault_of(light)
    if fault is not None:
        raise _not_valid(fault, _IN_FULL) from None
    del light.graph.value_info[:]
    for info in light.graph.output:  # those that are stated need not be those of these inputs
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    for info in light.graph.input:
        if info.name in shapes and info.type.HasField("tensor_type"):
            dims = [e if isinstance(e, int) else str(e) for e in shapes[info.name]]
            code = info.type.tensor_type.elem_type
            info.type.CopyFrom(helper.make_tensor_type_proto(code, dims))
    fault = _fault_of(light)
    if fault is not None:
        raise UsageError(
            f"the model does not take inputs of these shapes: {_reason(fault)}",
            hint="give other ones: --shape or --dim (shapes= or dims= in Python)",
        ) from None


def _fault_of(model: ModelProto) -> Exception | None:
    """What onnx's strict shape inference says against *model*."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        return error
    return None


def demand_own_texts(nodes: Iterable[NodeProto]) -> None:
    """Refuse nodes with names that are not text, and with attributes that only a function has.

    Raises:
        ForeignFile: There is such a node.
    """
    for node in nodes:
        if not isinstance(node.op_type, str) or not isinstance(node.domain, str):
            raise _not_valid(ValueError(f"the operator {node.op_type!r} is not named by text"))
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                raise _not_valid(
                    ValueError(
                        f"attribute {attribute.name} of a {node.op_type} refers to "
                        f"{attribute.ref_attr_name!r}, which only nodes of functions can"
                    )
                )


def demand_computed(outputs: Iterable[str], values: Container[str]) -> None:
    """Refuse outputs that are not among *values*.

    onnx's checker does so, too, but does not run on models with operators that it does not know.

    Raises:
        ForeignFile: Nothing computes an output.
    """
    missing = [name for name in outputs if name not in values]
    if missing:
        raise _not_valid(ValueError(f"nothing computes the output {missing[0]!r}"))


def upgraded(model: ModelProto) -> ModelProto:
    """The model itself, or its conversion to a newer operator set if it is too old to import.

    Raises:
        UnsupportedModel: onnx cannot convert it, or it is newer than the installed onnx.
    """
    opset, newest = opset_of(model), onnx.defs.onnx_opset_version()
    if opset > newest:
        raise UnsupportedModel(
            f"the model uses operator set {opset}, the installed onnx package knows up to {newest}",
            hint="update the onnx package, or export with an older opset",
        )
    if opset >= _OLDEST_OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(_with_channel_slopes(model), _CONVERT_TO)
    except Exception as error:  # onnx's converter raises whatever its C++ adapters throw
        unknown = {
            n.op_type for n in model.graph.node
            if not onnx.defs.has(n.op_type, "" if n.domain in STANDARD else n.domain)
        }  # fmt: skip
        reason = f"it does not know {', '.join(sorted(unknown))}" if unknown else _reason(error)
        raise UnsupportedModel(
            f"operator set {opset} is too old and onnx cannot convert it: {reason}",
            hint=f"export the model with opset {_OLDEST_OPSET} or later",
        ) from None


def _with_channel_slopes(model: ModelProto) -> ModelProto:
    """*model*, which is old, with the slopes of each PRelu along its channels.

    In old operator sets, a list of slopes belongs to the channels.  onnx's converter keeps it, and
    newer ones broadcast it to the last axis.
    """
    lists = {t.name for t in model.graph.initializer if len(t.dims) == 1 and t.dims[0] != 1}
    nodes = [n for n in model.graph.node if n.op_type == "PRelu" and n.input[1] in lists]
    if not nodes:
        return model
    graph = onnx.shape_inference.infer_shapes(without_weights(model)).graph
    infos = (*graph.input, *graph.value_info)
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in infos}
    made = copied(model)
    held = {tensor.name: tensor for tensor in made.graph.initializer}
    for node in nodes:
        slopes = held[node.input[1]]
        slopes.dims[1:] = [1] * (ranks.get(node.input[0], 2) - 2)
    for info in made.graph.input:
        if info.name in held:  # stated once more
            info.CopyFrom(helper.make_tensor_value_info(
                info.name, held[info.name].data_type, held[info.name].dims
            ))  # fmt: skip
    return made


def _reason(error: Exception) -> str:
    """The message of *error* on one line, without the context that onnx appends."""
    said = " ".join(str(error).partition("==> Context")[0].split())
    return said or type(error).__name__
