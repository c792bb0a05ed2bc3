"""Shapes of a network's inputs: numbers, and dimensions with the ranges of their sizes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from onnx import ModelProto, ValueInfoProto

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.default_sizes import default_range
from ansorpy.frontend.onnx.dim_texts import dim_flags, extent_of, names_in
from ansorpy.frontend.onnx.nodes import initializer_names
from ansorpy.graph.ops import Shape
from ansorpy.ir.extents import Extent, Symbolic, dim_extent, dims_of, least, most
from ansorpy.ir.sizes import at, fixed_all
from ansorpy.ir.symbols import Dim
from ansorpy.size_ranges import AnySize, Size, SizeRange, shape_of, size_of

__all__ = ["InputShapes", "input_shapes", "may_have", "network_inputs", "stated_axes"]


@dataclass(frozen=True)
class InputShapes:
    """The shape of each input by name, and the range of each dimension that occurs in them.

    ``assumed`` has the ranges by name that neither the model nor the caller states.
    """

    shapes: Mapping[str, Shape]
    ranges: Mapping[Dim, SizeRange]
    assumed: Mapping[str, SizeRange]

    def replaced(self, dim: Dim, extent: Extent) -> InputShapes:
        """The same shapes, where *dim* is *extent*."""
        shapes = {name: tuple(at(e, {dim: extent}) for e in s) for name, s in self.shapes.items()}
        ranges = dict(self.ranges)
        old = ranges.pop(dim)
        for used in dims_of([extent]):
            if used not in ranges:  # the same dimension with a smaller range
                ranges[used] = replace(old, low=used.low, high=used.high, step=used.step)
        return InputShapes(shapes, ranges, self.assumed)

    @property
    def free(self) -> list[Dim]:
        """The dimensions whose ranges are assumed."""
        return [dim for dim in self.ranges if dim.name in self.assumed]

    @property
    def usual(self) -> dict[str, tuple[int, ...]]:
        """One shape for each input, to try the network with."""
        sizes = {dim: found.usual for dim, found in self.ranges.items()}
        return {name: fixed_all(at(e, sizes) for e in s) for name, s in self.shapes.items()}


def network_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs a caller provides: those without an initializer."""
    held = initializer_names(model.graph)
    return [info for info in model.graph.input if info.name not in held]


def input_shapes(
    model: ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
) -> InputShapes:
    """The shapes of the inputs of *model*.

    An axis that the model leaves open is a dimension, with the model's name for it, or else with
    the name of its input and its number: ``x.3``.  Axes with the same name are one dimension.  A
    name may be an expression of others: ``past + seq``.  What is not given gets a default range.

    Args:
        shapes: The size of every axis, by name of an input.
        dims: Sizes by name of a dimension.

    Raises:
        UsageError: A name is unknown, a size is none, or sizes contradict the model or each other.
    """
    infos = network_inputs(model)
    given = {name: shape_of(shape, name) for name, shape in (shapes or {}).items()}
    axes = {info.name: _axes(info, given.get(info.name)) for info in infos}
    _refuse_unknown(given, axes, "input")
    for name, sizes in given.items():
        _demand_fit(name, sizes, axes[name])
    wanted = {name: size_of(size, name) for name, size in (dims or {}).items()}
    texts = dict.fromkeys(a for row in axes.values() for a in row if isinstance(a, str))
    parts = _expressions(list(texts), wanted)
    names = [text for text in texts if text not in parts]
    names += sorted({name for found in parts.values() for name in found} - {*names})
    _refuse_unknown(wanted, names, "dynamic dimension")
    wanted |= _from_shapes(axes, given, wanted, parts)
    pinned = {
        (name, number): size
        for name, sizes in given.items()
        for number, size in enumerate(sizes)
        if isinstance(size, int)
    }
    assumed = _defaults(infos, axes, pinned, wanted, parts)
    return _with_extents(axes, pinned, wanted | assumed, parts, assumed)


Axis = int | str
"""A size that the model fixes, or the name of a dimension, or an expression of names."""


def stated_axes(info: ValueInfoProto) -> tuple[Axis, ...] | None:
    """What the model states of the axes of a tensor: ``""`` where it is nothing; None if it states
    no shape.

    Some exporters write a negative size for an open one.
    """
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return tuple(
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param
        for d in kind.shape.dim
    )


def may_have(stated: Sequence[Axis], shape: Shape) -> bool:
    """Whether a tensor with the axes that are *stated* has *shape*, at some sizes at least."""
    return len(stated) == len(shape) and all(
        isinstance(axis, str) or least(extent) <= axis <= most(extent)
        for axis, extent in zip(stated, shape, strict=True)
    )


def _axes(info: ValueInfoProto, given: Sequence[object] | None) -> tuple[Axis, ...]:
    """The axes that the model states for *info*; as many as are *given* if it states none."""
    stated = stated_axes(info)
    if info.type.HasField("tensor_type") and stated is None and given is None:
        raise UsageError(
            f"the model states no shape of the input {info.name}",
            hint=f"give it: --shape {quote(f'{info.name}=2x3')} (shapes= in Python)",
        )
    axes = ("",) * len(given or ()) if stated is None else stated
    return tuple(f"{info.name}.{n}" if axis == "" else axis for n, axis in enumerate(axes))


def _demand_fit(name: str, sizes: Sequence[Size], axes: Sequence[Axis]) -> None:
    """Refuse the *sizes* that the caller gives for the input *name* if the model fixes others."""
    if len(sizes) != len(axes):
        raise UsageError(
            f"the shape of {name}: the model's input has {len(axes)} dimensions, not {len(sizes)}",
            hint=f"give one size for each of {list(axes)}",
        )
    for have, size in zip(axes, sizes, strict=True):
        if isinstance(have, int) and have != size:
            said = "x".join(map(str, sizes))
            raise UsageError(
                f"the shape of {name}: the model fixes {list(axes)}, not {said}",
                hint="give these, or export the model with dynamic axes",
            )


def _refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(
            f"the model has no {what} named {', '.join(unknown)}",
            hint=f"it has {', '.join(dict.fromkeys(known)) or 'none'}",
        )


def _expressions(texts: Sequence[str], plain: Container[str]) -> dict[str, frozenset[str]]:
    """Those of *texts* that are expressions of dimensions, with the names in them.

    A text is the name of a dimension itself if the caller names it as such (*plain*), or if the
    inputs do not tell the size of some name in it: no axis has that name, and no expression of
    that name alone.
    """
    found = {text: names_in(text) or frozenset() for text in texts if text not in plain}
    parts = {text: names for text, names in found.items() if names - {text}}
    told = {text for text in texts if text not in parts}
    told |= {name for text, names in parts.items() for name in names if _tells(text, names)}
    return {text: names for text, names in parts.items() if names <= told}


def _tells(text: str, names: frozenset[str]) -> bool:
    """Whether the expression *text* tells the size of the only name in it: it is linear."""
    extents = {name: dim_extent(Dim(name, 0, 1 << 20)) for name in names}
    extent = extent_of(text, extents)
    if len(names) > 1 or not isinstance(extent, Symbolic):
        return False
    return [atoms for atoms, _ in extent.terms if atoms] == [extent.dims]


def _from_shapes(
    axes: Mapping[str, Sequence[Axis]],
    given: Mapping[str, Sequence[Size]],
    wanted: Mapping[str, Size],
    parts: Mapping[str, frozenset[str]],
) -> dict[str, Size]:
    """The sizes of dimensions that *given* shapes of inputs set.

    A dimension that has several numbers has none of them for its own: the model gives one name to
    axes that differ.
    """
    found: dict[str, set[Size]] = {}
    for name, sizes in given.items():
        for number, (axis, size) in enumerate(zip(axes[name], sizes, strict=True)):
            if isinstance(axis, int):
                continue
            if axis in parts:
                if not isinstance(size, int):
                    raise UsageError(
                        f"the shape of {name}: axis {number} is {axis}, "
                        "and has no range of its own",
                        hint=f"set {_flags(sorted(parts[axis]))}",
                    )
            else:
                found.setdefault(axis, set()).add(size)
                if wanted.get(axis, size) != size:
                    raise UsageError(
                        f"the shape of {name}: axis {number} has {size} elements, "
                        f"but {axis} is {wanted[axis]}",
                        hint=f"give {axis} once",
                    )
    for axis, several in found.items():
        if len(several) > 1 and not all(isinstance(size, int) for size in several):
            said = ", ".join(sorted(map(str, several)))
            raise UsageError(f"the dimension {axis} is {said}", hint="give it once")
    return {axis: several.pop() for axis, several in found.items() if len(several) == 1}


def _defaults(
    infos: Sequence[ValueInfoProto],
    axes: Mapping[str, Sequence[Axis]],
    pinned: Container[tuple[str, int]],
    wanted: Container[str],
    parts: Mapping[str, frozenset[str]],
) -> dict[str, SizeRange]:
    """Ranges of the dimensions that are still open."""
    found: dict[str, SizeRange] = {}
    for info in infos:
        for number, axis in enumerate(axes[info.name]):
            if isinstance(axis, int) or (info.name, number) in pinned:
                continue
            for name in sorted(parts.get(axis, {axis})):
                if name not in wanted and name not in found:
                    found[name] = default_range(name, info, number)
    return found


def _with_extents(
    axes: Mapping[str, Sequence[Axis]],
    pinned: Mapping[tuple[str, int], int],
    sizes: Mapping[str, Size],
    parts: Mapping[str, frozenset[str]],
    assumed: Mapping[str, SizeRange],
) -> InputShapes:
    dims = {name: _dim(name, size) for name, size in sizes.items() if isinstance(size, SizeRange)}
    known: dict[str, Extent] = {n: size for n, size in sizes.items() if isinstance(size, int)}
    known |= {name: dim_extent(dim) for name, dim in dims.items()}

    def extent(name: str, number: int, axis: Axis) -> Extent:
        if isinstance(axis, int):
            return axis
        if axis in parts and parts[axis] <= known.keys():
            found = extent_of(axis, known)
            _refuse_clash(name, number, axis, found, pinned.get((name, number)))
            return found
        return pinned[name, number] if (name, number) in pinned else known[axis]

    shapes = {
        name: tuple(extent(name, number, axis) for number, axis in enumerate(row))
        for name, row in axes.items()
    }
    for name, shape in shapes.items():
        for number, e in enumerate(shape):
            if least(e) < 0:
                raise UsageError(
                    f"axis {number} of input {name} has {e} elements, which may be below 0",
                    hint=f"change {_flags(sorted(d.name for d in dims_of([e])))}",
                )
    used = dims_of(e for shape in shapes.values() for e in shape)
    ranges = {dim: r for dim in used if isinstance(r := sizes[dim.name], SizeRange)}
    return InputShapes(shapes, ranges, assumed)


def _dim(name: str, sizes: SizeRange) -> Dim:
    return Dim(name, sizes.low, sizes.high, sizes.step)


def _refuse_clash(name: str, number: int, axis: str, found: Extent, pinned: int | None) -> None:
    """Refuse a size of an axis that differs from what its expression *axis* gives."""
    if pinned is not None and found != pinned:
        raise UsageError(
            f"the shape of {name}: axis {number} is {axis}, hence {found}, not {pinned}",
            hint=f"set {_flags(sorted(names_in(axis) or ()))}",
        )


def _flags(names: Iterable[str]) -> str:
    return dim_flags(dict.fromkeys(names, "N..M"))
