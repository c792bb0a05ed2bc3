"""The sizes of a call as LLVM IR: read off the shapes of its inputs, and the arena for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.graph.memory import Slot
from ansorpy.ir.extents import Extent, Form
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.ir.symbols import Dim, SizeOp
from ansorpy.runtime.entry.text import at, larger
from ansorpy.runtime.sizes import Told

__all__ = ["Sizes", "emit_layout", "emit_size"]

_LAYOUT = "@layout"


class Sizes:
    """Extents at the sizes of a call, each of which is computed once.

    Args:
        text: The function, in whose straight path extents are first used.
        given: The value that holds the size of each dimension.
    """

    def __init__(self, text: FunctionText, given: Mapping[Dim, str]) -> None:
        self._text = text
        self._given = dict(given)
        self._stated = tuple(given)
        self._known: dict[object, str] = {}

    def add(self, dim: Dim, value: str) -> None:
        """Let *dim* have the size *value*; slots do not depend on it."""
        self._given[dim] = value

    def knows(self, dims: Iterable[Dim]) -> bool:
        """Whether the sizes of all *dims* are known."""
        return all(dim in self._given for dim in dims)

    def value(self, extent: Extent) -> str:
        """Emit the value of *extent*."""
        if isinstance(extent, int):
            return str(extent)
        if extent not in self._known:
            parts = []
            for atoms, c in extent.terms:
                values = [self._given[a] if isinstance(a, Dim) else self._form(a) for a in atoms]
                factors = [*values, str(c)] if c != 1 or not atoms else values
                parts.append(reduce(self._product, factors))
            total = reduce(lambda sum_, part: self._text.define(f"add i64 {sum_}, {part}"), parts)
            self._known[extent] = total
        return self._known[extent]

    def count(self, shape: Sequence[Extent]) -> str:
        """Emit the number of elements of *shape*."""
        if all(isinstance(extent, int) for extent in shape):
            return str(reduce(lambda total, extent: total * extent, shape, 1))
        return reduce(self._product, map(self.value, shape))

    def _product(self, a: str, b: str) -> str:
        return self._text.define(f"mul i64 {a}, {b}")

    def _form(self, form: Form) -> str:
        if form not in self._known:
            self._known[form] = self._emit_form(form)
        return self._known[form]

    def _emit_form(self, form: Form) -> str:
        text, a, b = self._text, self.value(form.a), self.value(form.b)
        if form.op is not SizeOp.FLOORDIV:
            smaller = text.define(f"icmp slt i64 {a}, {b}")
            first, second = (a, b) if form.op is SizeOp.MIN else (b, a)
            return text.define(f"select i1 {smaller}, i64 {first}, i64 {second}")
        quotient = text.define(f"sdiv i64 {a}, {b}")
        left = text.define(f"srem i64 {a}, {b}")
        is_below = text.define(f"icmp slt i64 {left}, 0")  # divisors are positive
        return text.define(f"sub i64 {quotient}, {text.define(f'zext i1 {is_below} to i64')}")

    def array(self, dims: Sequence[Dim]) -> str:
        """Emit an array for the sizes of *dims*, as a kernel takes it; return its address."""
        return self._text.define(f"alloca [{len(dims)} x i64], align 8")

    def fill(self, array: str, dims: Sequence[Dim]) -> None:
        """Store the sizes of *dims*, which are known, in *array*."""
        for n, dim in enumerate(dims):
            slot = at(self._text, array, 8 * n)
            self._text.emit(f"store i64 {self._given[dim]}, ptr {slot}, align 8")

    def layout(self, slots: Sequence[Slot]) -> tuple[str, str]:
        """Emit a call of the function of :func:`emit_layout`.

        Returns the address of the slots' offsets, and the bytes of the arena.
        """
        places = self._text.define(f"alloca [{len(slots)} x i64], align 8")
        sizes = "".join(f"i64 {self._given[dim]}, " for dim in self._stated)
        return places, self._text.define(f"call i64 {_LAYOUT}({sizes}ptr {places})")


def emit_size(text: FunctionText, told: Told, given: str) -> tuple[str, str]:
    """Emit the size of a dimension for the extent *given*, and whether it is in range (an i1).

    An extent that is no multiple of the scale gives a size of which it is not the extent.
    """
    size, dim = given, told.dim
    if told.scale == -1:  # the least i64 has no quotient by -1
        size = text.define(f"sub i64 {told.offset}, {size}")
    elif told.offset:
        size = text.define(f"sub i64 {size}, {told.offset}")
    if abs(told.scale) != 1:
        size = text.define(f"sdiv i64 {size}, {told.scale}")
    above = text.define(f"icmp sge i64 {size}, {dim.low}")
    below = text.define(f"icmp sle i64 {size}, {dim.high}")
    inside = text.define(f"and i1 {above}, {below}")
    if dim.step > 1:
        left = text.define(f"urem i64 {size}, {dim.step}")
        inside = text.define(f"and i1 {inside}, {text.define(f'icmp eq i64 {left}, 0')}")
    return size, inside


def emit_layout(dims: Sequence[Dim], slots: Sequence[Slot]) -> str:
    """Emit ``i64 @layout(sizes of dims, ptr offsets)``, which stores the offset of each slot.

    It returns the bytes of the arena.
    """
    names = {dim: f"%size{n}" for n, dim in enumerate(dims)}
    sizes = "".join(f"i64 {name}, " for name in names.values())
    text = FunctionText(f"internal i64 {_LAYOUT}({sizes}ptr %offsets)")
    values = Sizes(text, names)
    ends: list[str] = []
    padded: dict[Extent, str] = {}
    for number, slot in enumerate(slots):
        start = reduce(lambda a, b: larger(text, a, b), [ends[n] for n in slot.behind] or ["0"])
        text.emit(f"store i64 {start}, ptr {at(text, '%offsets', 8 * number)}, align 8")
        size = slot.size_bytes
        if size not in padded:
            more = text.define(f"add i64 {values.value(size)}, {ALIGNMENT_BYTES - 1}")
            padded[size] = text.define(f"and i64 {more}, {-ALIGNMENT_BYTES}")
        ends.append(text.define(f"add i64 {start}, {padded[size]}"))
    below = {number for slot in slots for number in slot.behind}
    last = [end for number, end in enumerate(ends) if number not in below]
    text.emit(f"ret i64 {reduce(lambda a, b: larger(text, a, b), last)}")
    return text.render()
