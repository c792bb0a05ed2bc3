"""Static shapes of a network's inputs; dynamic dimensions must be given sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, ValueInfoProto

from ansorpy.errors import UsageError
from ansorpy.graph.ops import Shape

__all__ = ["network_inputs", "pinned_shapes"]


def network_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs a caller provides: those without an initializer."""
    held = {tensor.name for tensor in model.graph.initializer}
    held.update(sparse.values.name for sparse in model.graph.sparse_initializer)
    return [info for info in model.graph.input if info.name not in held]


def pinned_shapes(
    model: ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> dict[str, Shape]:
    """A static shape for each input of *model*.

    Args:
        shapes: Full shapes by input name.
        dims: Sizes by name of a dynamic dimension.

    Raises:
        UsageError: A name is unknown, a shape contradicts the model, or dimensions are left open;
            the message lists all open dimensions with the flags that set them.
    """
    shapes, dims = dict(shapes or {}), dict(dims or {})
    inputs = network_inputs(model)
    _refuse_unknown(shapes, [info.name for info in inputs], "input", "--shape")
    parameters = [d.dim_param for info in inputs for d in _dims(info) if d.dim_param]
    _refuse_unknown(dims, parameters, "dynamic dimension", "--dim")
    declared = {info.name: _declared(info, dims) for info in inputs}
    result: dict[str, Shape] = {}
    open_dims: list[str] = []
    open_inputs: list[str] = []
    for name, extents in declared.items():
        given = tuple(int(e) for e in shapes[name]) if name in shapes else None
        shape = extents if given is None else _given(name, given, extents)
        open_dims += [f"{name}[{d}] ({e})" for d, e in enumerate(shape) if isinstance(e, str)]
        if any(isinstance(e, str) for e in shape):
            open_inputs.append(name)
        result[name] = tuple(e for e in shape if isinstance(e, int))
        if any(e < 0 for e in result[name]):
            raise UsageError(f"input {name} has shape {result[name]}; no size may be negative")
    if open_dims:
        raise UsageError(f"the model has dynamic dimensions: {', '.join(open_dims)}",
                         hint=_pin_hint(declared, open_inputs))  # fmt: skip
    return result


def _dims(info: ValueInfoProto):  # type: ignore[no-untyped-def]  # protobuf's container type
    return info.type.tensor_type.shape.dim


def _declared(info: ValueInfoProto, dims: Mapping[str, int]) -> tuple[int | str, ...]:
    """Sizes from the model and *dims*; for an open dimension, its name (``?`` if it has none)."""
    return tuple(
        d.dim_value
        if d.HasField("dim_value") and d.dim_value >= 0
        else int(dims[d.dim_param]) if d.dim_param in dims else d.dim_param or "?"
        for d in _dims(info)
    )  # fmt: skip


def _given(name: str, given: Shape, declared: tuple[int | str, ...]) -> Shape:
    if declared and len(given) != len(declared):
        raise UsageError(f"--shape {name}: the model's input has {len(declared)} dimensions, "
                         f"not {len(given)}")  # fmt: skip
    for have, want in zip(declared, given, strict=bool(declared)):
        if isinstance(have, int) and have != want:
            raise UsageError(f"--shape {name}: the model fixes {list(declared)}, not {given}")
    return given


def _refuse_unknown(
    given: Mapping[str, object], known: Sequence[str], what: str, flag: str
) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(
            f"{flag}: the model has no {what} named {', '.join(unknown)}",
            hint=f"it has {', '.join(dict.fromkeys(known)) or 'none'}",
        )


def _pin_hint(declared: Mapping[str, tuple[int | str, ...]], open_inputs: Sequence[str]) -> str:
    """A hint with flags that set all open dimensions, by name where they have one."""
    named = [e for n in open_inputs for e in declared[n] if isinstance(e, str) and e != "?"]
    flags = [f"--dim {name}=1" for name in sorted(set(named))]
    for name in sorted(open_inputs):
        if "?" in declared[name]:
            flags.append(
                f"--shape {name}:{'x'.join('1' if e == '?' else str(e) for e in declared[name])}"
            )
    return f"set their sizes, for example {' '.join(flags)}"
