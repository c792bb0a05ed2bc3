"""Declared hardware instructions, each defined by a small compute pattern.

The pattern defines the meaning of an :class:`~ansorpy.ir.loops.Instruction` statement, so
interpreters, and generators without the instruction, run the result of :func:`expand`: the pattern
as loops.  Instructions of a warp or warpgroup (four warps) also define which lane holds which
element of each operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.errors import LoweringError, UsageError
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import loads_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr, Load, Reduce, ReduceKind, Var
from ansorpy.ir.fragments import GROUP, WARP, Digit, Fragment, fragment_lanes, fragment_shape
from ansorpy.ir.loops import Buffer, For, ForKind, Instruction, Stmt, Store
from ansorpy.ir.rewrite.rewriter import Rewriter, substitute
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis

__all__ = [
    "LDMATRIX",
    "MMA_SYNC",
    "QUADS",
    "WGMMA",
    "WGMMA_HELD",
    "Intrinsic",
    "declare",
    "expand",
    "intrinsic",
    "is_along",
    "operand_axes",
    "operand_dims",
    "operand_tensors",
    "operands_of",
]  # fmt: skip

_Operands = Mapping[Tensor, tuple[Buffer, tuple[Expr, ...]]]


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """A hardware instruction; one execution computes ``pattern`` over all of its axes.

    A reduction adds to the current value of the output.  For an instruction that a team executes
    together, ``fragments`` define how lanes hold each of :func:`operand_tensors` (an empty fragment
    means shared memory); instructions of a single thread have none.  An ``asynchronous``
    instruction reads shared memory and adds to registers until a wait for it returns.
    """

    name: str
    pattern: ComputeOp
    fragments: tuple[Fragment, ...] = ()
    asynchronous: bool = False

    @property
    def types(self) -> tuple[DType, ...]:
        """Types of the operands, in their order."""
        return tuple(tensor.dtype for tensor in operand_tensors(self.pattern))

    @property
    def team(self) -> int:
        """Number of lanes that execute the instruction together."""
        return fragment_lanes(self.fragments[0]) if self.fragments else 1


_DECLARED: dict[str, Intrinsic] = {}


def declare(instruction: Intrinsic) -> Intrinsic:
    """Register *instruction* under its name, and return it.

    Raises:
        UsageError: Another instruction has that name.
    """
    if _DECLARED.setdefault(instruction.name, instruction) is not instruction:
        raise UsageError(f'an instruction named "{instruction.name}" is already declared')
    return instruction


def intrinsic(name: str) -> Intrinsic:
    """The instruction declared as *name*.

    Raises:
        UsageError: There is none; the hint lists the declared ones.
    """
    found = _DECLARED.get(name)
    if found is None:
        raise UsageError(
            f'there is no instruction "{name}"',
            hint=f"declared are {', '.join(_DECLARED)}; declare() adds one",
        )
    return found


def operand_tensors(pattern: ComputeOp) -> tuple[Tensor, ...]:
    """The tensors of *pattern* in the order of an instruction's operands: output, then inputs."""
    return (pattern, *loads_of(pattern))


def operand_axes(by: Intrinsic, tensor: Tensor) -> tuple[Axis, ...]:
    """The axes of the pattern that index the dimensions of an operand."""
    if tensor is by.pattern:
        return by.pattern.axes
    loads = loads_of(by.pattern).get(tensor)
    if loads is None:
        raise UsageError(f"{by.name} has no operand {tensor.name}")
    return tuple(index for index in loads[0] if isinstance(index, Axis))


def is_along(by: Intrinsic, tensor: Tensor) -> bool:
    """True if an operand's innermost dimension runs along the reduction."""
    return operand_axes(by, tensor)[-1] in by.pattern.reduce_axes


def operand_dims(buffer: Buffer, tensor: Tensor) -> tuple[int, ...]:
    """The dimensions of *buffer* that correspond to those of the operand *tensor*.

    These are the last dimensions; in a warp's registers, those to which the fragment gives digits.
    """
    if buffer.fragment is None:
        return tuple(range(len(buffer.shape) - tensor.ndim, len(buffer.shape)))
    return tuple(d for d, digits in enumerate(buffer.fragment) if digits)


def expand(stmt: Instruction) -> Stmt:
    """The pattern of *stmt* as serial loops on its operands.

    Raises:
        UsageError, LoweringError: As :func:`operands_of`.
    """
    pattern = intrinsic(stmt.name).pattern
    axes = (*pattern.axes, *pattern.reduce_axes)
    variables: dict[Var, Var] = {axis: Var(axis.name) for axis in axes}
    operands = operands_of(stmt)
    body = pattern.body
    kind, source = (body.kind, body.source) if isinstance(body, Reduce) else (None, body)
    value = _OnOperands(operands).expr(substitute(source, variables))
    buffer, base = operands[pattern]
    at = tuple(variables[axis] for axis in pattern.axes)
    written = _shifted(base, at, operand_dims(buffer, pattern))
    nest: Stmt = Store(buffer, written, value, kind)
    for axis in reversed(axes):
        nest = For(variables[axis], axis.extent, ForKind.SERIAL, nest)
    return nest


def operands_of(stmt: Instruction) -> _Operands:
    """The buffer, and the indices of its first element, that *stmt* has for each operand tensor.

    Raises:
        UsageError: No instruction of that name is declared.
        LoweringError: The operands differ from the pattern's in number, type or rank.
    """
    tensors = operand_tensors(intrinsic(stmt.name).pattern)
    if len(stmt.operands) != len(tensors):
        raise LoweringError(
            f"{stmt.name} takes {len(tensors)} operands, got {len(stmt.operands)}",
            hint=f"they are {', '.join(tensor.name for tensor in tensors)}",
        )
    for tensor, (buffer, base) in zip(tensors, stmt.operands, strict=True):
        fits = len(operand_dims(buffer, tensor)) == tensor.ndim <= len(base)
        if buffer.dtype is not tensor.dtype or not fits:
            raise LoweringError(
                f"{buffer.name}, {buffer.dtype.value} of {len(base)} dimensions, cannot be "
                f"operand {tensor.name} of {stmt.name}",
                hint=f"it is {tensor.dtype.value} and has {tensor.ndim} dimensions",
            )
    return dict(zip(tensors, stmt.operands, strict=True))


class _OnOperands(Rewriter):
    """Replaces loads of the pattern's placeholders with loads of an instruction's operands."""

    def __init__(self, operands: _Operands):
        super().__init__()
        self.operands = operands

    def leave(self, e: Expr) -> Expr:
        if isinstance(e, Load) and isinstance(e.source, Tensor):
            buffer, base = self.operands[e.source]
            return Load(buffer, _shifted(base, e.indices, operand_dims(buffer, e.source)))
        return e


def _shifted(
    base: tuple[Expr, ...], local: tuple[Expr, ...], dims: tuple[int, ...]
) -> tuple[Expr, ...]:
    """*base* with *local* added in the dimensions *dims*."""
    moved = dict(zip(dims, local, strict=True))
    return tuple(b + moved[d] if d in moved else b for d, b in enumerate(base))


def _dot_16x4() -> ComputeOp:
    """AVX-512 VNNI ``vpdpbusd``: 16 int32 sums of 4 products of uint8 by int8."""
    a = placeholder((4,), DType.UINT8, name="a")
    b = placeholder((16, 4), DType.INT8, name="b")
    k = reduce_axis(4, name="k")
    return compute(
        (16,),
        lambda i: sum_over(a[k].astype(DType.INT32) * b[i, k].astype(DType.INT32), axis=k),
        name="dot_16x4",
    )


declare(Intrinsic("vnni.dot_16x4", _dot_16x4()))


_ROW, _COLUMN = Digit(8, lane=4), Digit(4, lane=1)
"""These instructions number lanes by row (or column of B), then by group of neighbours."""


def _mma_sync(left: DType, right: DType, total: DType, *, kind: str = "") -> Intrinsic:
    """``mma.sync.m16n8``: C[16, 8] += A[16, depth] * B[depth, 8], two registers of B per lane.

    A 32-bit register holds as many neighbours along the reduction as fit.  Source: PTX ISA, "Matrix
    Fragments for mma.m16n8k*".
    """
    near = 32 // left.bits
    depth = 8 * near
    a = placeholder((16, depth), left, name="a")
    b = placeholder((depth, 8), right, name="b")
    k = reduce_axis(depth, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        return sum_over(a[i, k].astype(total) * b[k, j].astype(total), axis=k)

    name = f"mma.m16n8k{depth}.{total.value}.{kind or f'{left.value}.{right.value}'}"
    neighbours = (Digit(near, register=1),) if near > 1 else ()
    along_a = (Digit(2, register=2 * near), _COLUMN, *neighbours)
    along_b = (Digit(2, register=near), _COLUMN, *neighbours)
    fragments: tuple[Fragment, ...] = (
        ((Digit(2, register=2), _ROW), (_COLUMN, Digit(2, register=1))),
        ((Digit(2, register=near), _ROW), along_a),
        (along_b, (_ROW,)),
    )
    return declare(Intrinsic(name, compute((16, 8), term, name="c"), fragments))


_F16, _BF16, _F32 = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32
_BYTES = (DType.INT8, DType.UINT8)

MMA_SYNC: tuple[Intrinsic, ...] = (
    _mma_sync(_F16, _F16, _F32),
    _mma_sync(_BF16, _BF16, _F32),
    _mma_sync(_F32, _F32, _F32, kind="tf32"),
    *(_mma_sync(a, b, DType.INT32) for a in _BYTES for b in _BYTES),
)
"""Matrix products of tensor cores from ``sm_80`` on.  TF32 reads a float32's upper 19 bits."""


def _ldmatrix(product: Intrinsic, operand: int, *, turned: bool) -> Intrinsic:
    """``ldmatrix``: loads an operand's fragment from shared memory, in rows of 16 bytes.

    Neighbours in memory lie along the reduction, or across it if the instruction transposes.
    """
    fragment, dtype = product.fragments[operand], product.types[operand]
    shape = fragment_shape(fragment)
    swapped = turned is (operand == 1)
    source = placeholder(shape[::-1] if swapped else shape, dtype, name="rows")

    def element(i: Expr, j: Expr) -> Expr:
        return source[j, i] if swapped else source[i, j]

    name = f"ldmatrix.{' ab'[operand]}.{dtype.value}{'.trans' if turned else ''}"
    return declare(Intrinsic(name, compute(shape, element, name="fragment"), (fragment, ())))


LDMATRIX: tuple[Intrinsic, ...] = tuple(
    _ldmatrix(product, operand, turned=turned)
    for product in MMA_SYNC
    if product.types[1] is product.types[2] and product.types[1] is not _F32
    for operand in (1, 2)
    for turned in ((False, True) if product.types[1].bits == 16 else (False,))
)
"""Loads of fragments; only 16-bit elements can be transposed."""


_GROUP_ROWS = (Digit(4, lane=WARP), Digit(2, register=1), _ROW)
"""Each warp of a warpgroup has 16 of 64 rows, and each of its lanes two of these."""


def _quad(kind: ReduceKind, team: int) -> Intrinsic:
    """Combines the values of the four lanes that share rows, and leaves the result in each of them.

    Neighbouring lanes of a *team* exchange registers (``shfl``).
    """
    share: Fragment = ((_ROW,) if team == WARP else _GROUP_ROWS, (_COLUMN,))
    shape = fragment_shape(share)
    values = placeholder(shape, _F32, name="values")
    k = reduce_axis(4, name="k")

    def combined(i: Expr, lane: Expr) -> Expr:
        return Reduce(kind, values[i, k], (k,))

    pattern = compute(shape, combined, name="combined")
    name = f"quad.{kind.value}.float32{'' if team == WARP else '.group'}"
    return declare(Intrinsic(name, pattern, (share, share)))


QUADS: Mapping[tuple[ReduceKind, int], Intrinsic] = {
    (kind, team): _quad(kind, team)
    for team in (WARP, GROUP)
    for kind in (ReduceKind.MAX, ReduceKind.SUM)
}
"""Combine the parts of a row that the lanes of :data:`MMA_SYNC`'s or :data:`WGMMA`'s sums hold."""


_WGMMA_ROWS = 64
_COLUMNS = (16, 32, 64, 128, 256)
"""Column counts that give round tiles, among the multiples of 8 that the instruction supports."""


def _wgmma(
    left: DType,
    right: DType,
    total: DType,
    columns: int,
    rows_first: bool = False,
    columns_first: bool = False,
    *,
    kind: str = "",
    held: bool = False,
) -> Intrinsic:
    """``wgmma.mma_async.m64``: C[64, columns] += A[64, depth] * B[depth, columns], asynchronous.

    The factors are in shared memory, each with neighbours along the reduction, or across it if
    *rows_first* (A) or *columns_first* (B); A is in registers if *held*.  Each warp has 16 of the
    rows, distributed as by ``mma.sync``.

    Source: PTX ISA, "Matrix Fragments for wgmma.mma_async.m64nNk*".
    """  # fmt: skip
    depth = 256 // left.bits
    shapes = ((_WGMMA_ROWS, depth), (depth, columns))
    a = placeholder(shapes[0][::-1] if rows_first else shapes[0], left, name="a")
    b = placeholder(shapes[1] if columns_first else shapes[1][::-1], right, name="b")
    k = reduce_axis(depth, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        x, y = a[k, i] if rows_first else a[i, k], b[k, j] if columns_first else b[j, k]
        return sum_over(x.astype(total) * y.astype(total), axis=k)

    order = f"{'h' if held else 'kr'[rows_first]}{'kc'[columns_first]}"
    types = kind or f"{left.value}.{right.value}"
    name = f"wgmma.m64n{columns}k{depth}.{order}.{total.value}.{types}"
    share: Fragment = (
        (Digit(4, lane=WARP), Digit(2, register=2), _ROW),
        (Digit(columns // 8, register=4), _COLUMN, Digit(2, register=1)),
    )
    near = 32 // left.bits
    mine: Fragment = (
        (Digit(4, lane=WARP), Digit(2, register=near), _ROW),
        (Digit(2, register=2 * near), _COLUMN, Digit(near, register=1)),
    )
    pattern = compute((_WGMMA_ROWS, columns), term, name="c")
    return declare(Intrinsic(name, pattern, (share, mine if held else (), ()), asynchronous=True))


WGMMA: tuple[Intrinsic, ...] = (
    *(
        _wgmma(dtype, dtype, _F32, columns, rows_first, columns_first)
        for dtype in (_F16, _BF16)
        for columns in _COLUMNS
        for rows_first in (False, True)
        for columns_first in (False, True)
    ),
    *(_wgmma(_F32, _F32, _F32, columns, kind="tf32") for columns in _COLUMNS),
    *(_wgmma(a, b, DType.INT32, columns) for a in _BYTES for b in _BYTES for columns in _COLUMNS),
)
"""Matrix products of ``sm_90a``; only 16-bit factors may have neighbours across the reduction."""

WGMMA_HELD: tuple[Intrinsic, ...] = tuple(
    _wgmma(dtype, dtype, _F32, columns, columns_first=columns_first, held=True)
    for dtype in (_F16, _BF16)
    for columns in _COLUMNS
    for columns_first in (False, True)
)
"""The same with the left factor in registers."""
