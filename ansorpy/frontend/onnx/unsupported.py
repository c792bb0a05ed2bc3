"""Why an operator cannot be translated: the reasons that importers raise, with what to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ansorpy.frontend.onnx.dim_texts import dim_flags
from ansorpy.frontend.onnx.equations import Equation, negative, unequal
from ansorpy.graph.ops import Op, Shape
from ansorpy.ir.extents import AnyExtent, dims_of
from ansorpy.ir.symbols import Dim

__all__ = [
    "UNKNOWN", "TooLarge", "TooShort", "Unequal", "Unknown", "Unsupported", "one_size", "unfit",
]  # fmt: skip

UNKNOWN = "it must be a constant or follow from the shapes"
"""What is said of an operand that is not known when the model is compiled."""


class Unsupported(Exception):
    """A node cannot be translated; names the attribute or input at fault, and what to do."""

    def __init__(self, attribute: str, advice: str):
        super().__init__(f"{attribute}: {advice}")
        self.attribute = attribute
        self.advice = advice


class Unequal(Unsupported):
    """Operands have extents that the operator needs to be equal, but that may differ."""

    def __init__(self, equation: Equation):
        a, b = equation
        super().__init__(f"{a} and {b}", f"they must be equal, or {one_size(dims_of(equation))}")
        self.equation = equation


class TooShort(Unsupported):
    """An operator needs *missing* to be at least 0, but it is below at some sizes."""

    def __init__(self, attribute: str, advice: str, missing: AnyExtent):
        names = [dim.name for dim in dims_of([missing])]
        more = f"; give larger sizes of {', '.join(names)}" if names else ""
        super().__init__(attribute, f"{advice}{more}")
        self.missing = missing


class TooLarge(Unsupported):
    """A constant would be larger than a library can hold."""

    def __init__(self, what: str):
        super().__init__(what, "values that large must be inputs")


class Unknown(Unsupported):
    """An operand must be known when the model is compiled, but depends on *inputs*.

    Args:
        bound: The tensor that would help, too, if it had a bound; empty if there is none.
    """

    def __init__(
        self, attribute: str, inputs: Sequence[str], bound: str = "", advice: str = UNKNOWN
    ):
        super().__init__(attribute, advice)
        self.inputs, self.bound = tuple(inputs), bound


def one_size(dims: Sequence[Dim], counted: Collection[str] = ()) -> str:
    """How to give each of *dims* one size, unless data decide about it: those named *counted*."""
    known = [dim.name for dim in dims if dim.name in counted]
    if known:
        return f"data decide about {', '.join(known)}"
    flags = dim_flags({dim.name: _usual(dim) for dim in dims})
    return f"choose one size, for example with {flags}"


def _usual(dim: Dim) -> int:
    """A size to choose: 64 if possible, but the least one of what may be a batch."""
    return dim.low if dim.high <= 32 else max(dim.low, min(dim.high, 64))


def unfit(
    op: Op, shapes: Sequence[Shape], counted: Collection[Dim], error: ValueError
) -> Unsupported:
    """Why *op* does not take operands of these *shapes*, with what the sizes would have to be.

    Data decide the sizes of *counted*, so that these cannot be chosen.
    """
    equation = unequal(op, shapes)
    if equation is not None and any(dim in counted for dim in dims_of(equation)):
        a, b = equation
        return Unsupported(f"{a} and {b}", "they must be equal, but data decide about them")
    if equation is not None:
        return Unequal(equation)
    missing = negative(op, shapes)
    if missing is not None:
        return TooShort("operand shapes", str(error), missing)
    return Unsupported("operand shapes", str(error))
