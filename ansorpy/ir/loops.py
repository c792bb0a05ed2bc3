"""The loop program, the IR that schedules are lowered to and that code generators read.

Grammar::

    Program  := Program(name, params: Param*, body: Stmt)
    Param    := Param(buffer, role: input | constant | output)
    Stmt     := Seq(Stmt*) | For(var, extent, kind, Stmt) | If(cond, Stmt, Stmt?)
              | Let(var, Expr, Stmt) | Alloc(Buffer, Stmt) | Barrier(scope)
              | Store(Buffer, index*, Expr, reduce?) | Instruction(name, operands)
              | Prefetch(Buffer, Expr)
              | AsyncCopy(Buffer, index*, Expr) | Fence(scope)
              | Commit(copies | products) | Wait(copies | products, pending)
              | Shuffle(Buffer, index*, Expr, distance)
    ForKind  := serial | parallel | vectorized | unrolled | bulk
              | vthread | blockIdx.{x,y,z} | threadIdx.{x,y,z}
    Scope    := global | workspace | local | shared | warp

Loops start at 0 and step by 1.  Extents are numbers, or expressions of dimensions whose sizes a
call states (:mod:`ansorpy.ir.extents`); numbers are at least 1.  Consecutive ``parallel`` loops
with nothing between them form one collapsed iteration space.  The ``bulk`` loops around an
AsyncCopy are one copy of a box, which a GPU's copy engine makes; its writes need no fence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ReduceKind, SizeVar, Var, as_expr, walk
from ansorpy.ir.extents import AnyExtent, dims_of, extreme, prod_of
from ansorpy.ir.fragments import Fragment
from ansorpy.ir.node import node
from ansorpy.ir.sizes import fixed
from ansorpy.ir.strides import Strides, dense_strides, span
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = [
    "ALONE", "BARRIER_BYTES", "BLOCK_INDICES", "BLOCK_THREADS", "LAUNCH_INDICES",
    "SHARED_ALIGNMENT", "SWIZZLED_ROWS", "THREAD_INDICES", "WARP_LANES", "Alloc", "Async",
    "AsyncCopy", "Barrier", "Buffer", "Commit", "Fence", "For", "ForKind", "ForKinds", "If",
    "Instruction", "Let", "Param", "Prefetch", "Program", "Role", "Scope", "Seq", "Shuffle", "Stmt",
    "Store", "Wait", "expressions", "launch_extents", "substatements", "walk_stmts",
]  # fmt: skip


class Scope(Enum):
    """The memory that a buffer is in.

    GLOBAL: passed by the caller.  WORKSPACE: one instance per call, shared by all threads.
    LOCAL: one instance per thread (a GPU thread's registers).  SHARED: one instance per GPU block.
    WARP: one instance per warp or warpgroup, each element in a register of one of its lanes.
    """

    GLOBAL = "global"
    WORKSPACE = "workspace"
    LOCAL = "local"
    SHARED = "shared"
    WARP = "warp"


class ForKind(Enum):
    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BULK = "bulk"
    VTHREAD = "vthread"
    BLOCK_X = "blockIdx.x"
    BLOCK_Y = "blockIdx.y"
    BLOCK_Z = "blockIdx.z"
    THREAD_X = "threadIdx.x"
    THREAD_Y = "threadIdx.y"
    THREAD_Z = "threadIdx.z"

    @property
    def is_bound(self) -> bool:
        """True for block and thread indices of a GPU, and for virtual threads."""
        return self in LAUNCH_INDICES or self is ForKind.VTHREAD


BLOCK_INDICES = (ForKind.BLOCK_X, ForKind.BLOCK_Y, ForKind.BLOCK_Z)
THREAD_INDICES = (ForKind.THREAD_X, ForKind.THREAD_Y, ForKind.THREAD_Z)
LAUNCH_INDICES = (*BLOCK_INDICES, *THREAD_INDICES)
"""The indices whose extents are set by a kernel launch."""

ForKinds: TypeAlias = frozenset[ForKind]

BLOCK_THREADS: ForKinds = frozenset({*THREAD_INDICES, ForKind.VTHREAD})
"""Loops whose iterations share the shared memory of one GPU block."""

WARP_LANES: ForKinds = frozenset({ForKind.THREAD_X, ForKind.THREAD_Y})
"""Loops whose iterations are the lanes of a warp, in kernels with tiles in its registers."""

ALONE: ForKinds = frozenset()
"""No loops: each iteration has memory of its own."""


class Role(Enum):
    """Writer of a parameter: the caller in each call, the caller at bind time, or the kernel."""

    INPUT = "input"
    CONSTANT = "constant"
    OUTPUT = "output"


SHARED_ALIGNMENT = 16
"""Alignment in bytes of every buffer in shared memory: the widest access of a thread."""

BARRIER_BYTES = 64
"""Bytes of shared memory for the barriers at which copies of boxes arrive."""

SWIZZLED_ROWS = 8
"""Number of rows after which the pattern of a swizzled tile repeats."""


@node
class Buffer:
    """Row-major storage of ``shape`` elements: dense, or with ``strides`` in elements.

    In a warp's registers, ``fragment`` defines which lane holds which element; apart from
    instructions of the whole warp, only that lane reads and writes it.

    In shared memory, rows may be cut into parts of ``swizzle`` bytes: the first parts of all rows
    lie one after another, then the second parts, and so on.  The 16-byte units of a part are
    permuted: bits 4 to 6 of a byte's address are those of its offset XOR bits 7 to 9, limited to
    the bits that number the units of a part.  Warpgroup instructions read this layout.
    """

    name: str
    shape: tuple[AnyExtent, ...]
    dtype: DType
    scope: Scope
    strides: Strides | None = None
    fragment: Fragment | None = None
    swizzle: int = 0

    @property
    def size(self) -> AnyExtent:
        return prod_of(self.shape)

    @property
    def bytes(self) -> AnyExtent:
        return self.size * self.dtype.bytes

    @property
    def steps(self) -> Strides:
        """Elements between neighbours along each dimension."""
        return dense_strides(self.shape) if self.strides is None else self.strides

    @property
    def span(self) -> AnyExtent:
        """Elements from the first to the last, including gaps between them."""
        return span(self.shape, self.steps)

    @property
    def shared_alignment(self) -> int:
        """Alignment in bytes of this buffer in shared memory."""
        return max(SHARED_ALIGNMENT, self.swizzle * SWIZZLED_ROWS)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that this buffer occupies: a multiple of its alignment."""
        aligned = self.shared_alignment
        return -(-fixed(self.span) * self.dtype.bytes // aligned) * aligned

    def offset(self, indices: Sequence[Expr]) -> Expr:
        """Offset in elements of the element at *indices*, before 16-byte units are permuted."""
        total: Expr = as_expr(0)
        for index, step in zip(indices, self.steps, strict=True):
            total = total + index * step
        if not self.swizzle:
            return total
        width, (rows, columns) = self.swizzle // self.dtype.bytes, map(fixed, self.shape[-2:])
        row, column = indices[-2:]
        inside = column // width * (rows * width) + row * width + column % width
        return total - row * columns - column + inside


class Stmt:
    """Base of all statements."""

    __slots__ = ()


@node
class Seq(Stmt):
    """Statements one after another."""

    body: tuple[Stmt, ...]


@node
class For(Stmt):
    """``for var in range(extent): body``, executed according to ``kind``."""

    var: Var
    extent: AnyExtent
    kind: ForKind
    body: Stmt


@node
class If(Stmt):
    cond: Expr
    then: Stmt
    other: Stmt | None


@node
class Let(Stmt):
    """``var = value`` for the body."""

    var: Var
    value: Expr
    body: Stmt


@node
class Alloc(Stmt):
    """``buffer`` exists during the body; its initial contents are undefined."""

    buffer: Buffer
    body: Stmt


@node
class Store(Stmt):
    """``buffer[indices] = value``, or combined with the old value if ``reduce`` is given."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    reduce: ReduceKind | None


@node
class Barrier(Stmt):
    """All threads of the block (SHARED) or of the grid (GLOBAL) arrive before any continues."""

    scope: Scope


@node
class Instruction(Stmt):
    """A declared hardware instruction: ``operands`` are (buffer, indices of its first element).

    If these are in a warp's registers, its lanes execute the instruction together.  An instruction
    declared ``asynchronous`` completes some time before a :class:`Wait` for it returns; until then
    the elements it adds to are undefined, and its operands in shared memory must not change.
    """

    name: str
    operands: tuple[tuple[Buffer, tuple[Expr, ...]], ...]


@node
class Prefetch(Stmt):
    """Hint that the cache line of element ``offset`` of ``buffer`` will be read later.

    The element may lie outside the buffer.
    """

    buffer: Buffer
    offset: Expr


@node
class AsyncCopy(Stmt):
    """``buffer[indices] = value``, completed some time before a :class:`Wait` for it returns.

    ``buffer`` is in shared memory; ``value`` is a load from the caller's memory or a workspace,
    or a select between such a load and 0.  Until the wait the element is undefined for all threads;
    after it, the copying thread sees the value, and after a barrier its whole block.

    In ``bulk`` loops, up to ``blocks`` neighbouring blocks that copy the same box may each copy a
    part of it to all of them.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    blocks: int = 1


class Async(Enum):
    """Kinds of asynchronous groups: a thread's copies, or a team's instructions."""

    COPIES = "copies"
    PRODUCTS = "products"


@node
class Commit(Stmt):
    """Form the next group of this ``kind`` from everything that this thread (for instructions, its
    team) started since its last commit."""

    kind: Async


@node
class Wait(Stmt):
    """Wait until all groups of this ``kind`` but the last ``pending`` are complete."""

    kind: Async
    pending: int


@node
class Fence(Stmt):
    """Make earlier writes of this thread visible to asynchronous instructions.

    SHARED: its stores to shared memory and the copies it waited for; a barrier must follow.  WARP:
    its registers, which such instructions must not use without a fence after the last write.
    """

    scope: Scope


@node
class Shuffle(Stmt):
    """``buffer[indices]`` = the *value* of another thread of the warp.

    The numbers of the two threads in the block differ in the bit *distance*, a power of two below
    32.  All threads of a warp must take part.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    distance: int


@node
class Param:
    buffer: Buffer
    role: Role


@node
class Program:
    """One kernel: parameters in calling order (inputs, constants, outputs) and its body."""

    name: str
    params: tuple[Param, ...]
    body: Stmt

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions whose sizes a call states: those of the parameters, then of the body."""
        return _dims(self)

    def with_body(self, body: Stmt) -> Program:
        """This program with another *body*; the program itself if its body is the same object."""
        return self if body is self.body else Program(self.name, self.params, body)


@lru_cache(maxsize=64)
def _dims(program: Program) -> tuple[Dim, ...]:
    buffers = [param.buffer for param in program.params]
    extents = [extent for b in buffers for extent in (*b.shape, *(b.strides or ()))]
    extents += [s.extent for s in walk_stmts(program.body) if isinstance(s, For)]
    found = dict.fromkeys(dims_of(extents))
    for stmt in walk_stmts(program.body):
        for root in expressions(stmt):
            found.update((e.dim, None) for e in walk(root) if isinstance(e, SizeVar))
    return tuple(found)


def substatements(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside *stmt*."""
    match stmt:
        case Seq(body):
            return body
        case For(_, _, _, body) | Let(_, _, body) | Alloc(_, body):
            return (body,)
        case If(_, then, other):
            return (then,) if other is None else (then, other)
        case _:
            return ()


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The root expressions directly in *stmt*, without those of statements inside it."""
    match stmt:
        case (
            Store(_, indices, value, _)
            | Shuffle(_, indices, value, _)
            | AsyncCopy(_, indices, value)
        ):
            return (*indices, value)
        case If(cond, _, _):
            return (cond,)
        case Let(_, value, _) | Prefetch(_, value):
            return (value,)
        case Instruction(_, operands):
            return tuple(index for _, at in operands for index in at)
        case _:
            return ()


def walk_stmts(stmt: Stmt) -> Iterator[Stmt]:
    """*stmt* and every statement below it, in program order."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(substatements(top)))


def launch_extents(stmt: Stmt) -> dict[ForKind, AnyExtent]:
    """The largest extent of each block and thread index that loops in *stmt* run over."""
    found: dict[ForKind, AnyExtent] = {}
    for loop in walk_stmts(stmt):
        if isinstance(loop, For) and loop.kind in LAUNCH_INDICES:
            known = found.get(loop.kind, loop.extent)
            found[loop.kind] = extreme(SizeOp.MAX, known, loop.extent)
    return found
