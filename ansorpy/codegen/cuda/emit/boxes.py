"""Copies of boxes: the first thread of a block lets the copy engine fill tiles of shared memory.

::

    for i in 0..128  # bulk               -->   copies.box<16384>(A_boxes, &A_shared[at], k, i);
      for k in 0..64  # bulk
        A.shared[i, k] = copy(select(..., A[...], 0.0))

A group of copies completes at a barrier in shared memory, where it is waited for.  Sources: PTX
ISA, ``cp.async.bulk.tensor`` and ``mbarrier``; CUDA Driver API, "Tensor Map Object Management".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.codegen.cuda.emit.copies import source_of
from ansorpy.codegen.cuda.emit.emitter import Emitter
from ansorpy.codegen.cuda.launch.plan import BoxedTensor
from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.expr import Compare, CompareOp, Expr, Load, Var, as_expr
from ansorpy.ir.loops import (
    BARRIER_BYTES,
    SWIZZLED_ROWS,
    Async,
    AsyncCopy,
    Buffer,
    For,
    ForKind,
    Stmt,
    Wait,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed

__all__ = ["BOX_HELPERS", "BOX_NEEDS", "begun_boxes", "box_copy", "sources_in"]

MOST_ROWS = 256
"""The most elements of a box along a dimension (CUDA, ``cuTensorMapEncodeTiled``)."""

_RANKS = range(2, 6)

BARRIERS = BARRIER_BYTES // 8
"""Groups of boxes that a kernel tells apart."""


def sources_in(body: Stmt) -> list[tuple[Buffer, BoxedTensor]]:
    """What *body* copies from in boxes, and the form of these, without repetitions."""
    boxes = [s for s in walk_stmts(body) if isinstance(s, For) and s.kind is ForKind.BULK]
    found = [_Box.of(s) for s in boxes if isinstance(s.body, For)]
    return list(dict.fromkeys(box.source for box in found if box is not None))


@dataclass(frozen=True)
class _Box:
    """The two innermost loops of a copy: *rows* and *columns* of the tile, cut into boxes.

    ``dims`` are the dimensions of the source along which rows and columns run; ``pieces`` are the
    extents of one box.
    """

    copy: AsyncCopy
    rows: For
    columns: For
    dims: tuple[int, int]
    pieces: tuple[int, int]

    @staticmethod
    def of(s: For) -> _Box | None:
        """The box of the loops *s* and the one inside it; None if they are not the last two."""
        columns = s.body
        if not isinstance(columns, For) or not isinstance(columns.body, AsyncCopy):
            return None
        copy = columns.body
        load, _ = source_of(copy)
        tile, part = copy.buffer, copy.buffer.swizzle // copy.buffer.dtype.bytes
        rows = fixed(s.extent)
        parts = fixed(columns.extent) * tile.dtype.bytes // tile.swizzle if part else 1
        most = min(MOST_ROWS, rows // max(1, copy.blocks // parts))
        whole_rows = range(SWIZZLED_ROWS, most + 1, SWIZZLED_ROWS)
        piece = max((n for n in whole_rows if rows % n == 0), default=rows)
        at = [_dim_of(loop.var, load) for loop in (s, columns)]
        whole = copy.indices[-2] is s.var and copy.indices[-1] is columns.var
        if not part:
            raise CodegenError(
                f"the layout of {tile.name} is not one that boxes have",
                hint="rows are cut into parts, which are swizzled",
            )
        if not whole or at[0] is None or at[1] != len(load.indices) - 1:
            raise CodegenError(
                f"{tile.name} is not filled by boxes of its source",
                hint="the tile's last two indices run along dimensions of the source",
            )
        return _Box(copy, s, columns, (at[0], at[1]), (piece, part))

    @property
    def source(self) -> tuple[Buffer, BoxedTensor]:
        load, _ = source_of(self.copy)
        assert isinstance(load.source, Buffer)
        shape = load.source.shape
        pieces = dict(zip(self.dims, self.pieces, strict=True))
        box = tuple(pieces.get(d, 1) for d in range(len(shape)))
        tile = self.copy.buffer
        return load.source, BoxedTensor(tile.dtype.bytes, shape, box, tile.swizzle)


def _dim_of(var: Var, load: Load) -> int | None:
    """The only dimension of *load* along which *var* runs, in steps of one."""
    found = [d for d, at in enumerate(load.indices) if var in free_vars(at)]
    return found[0] if len(found) == 1 and linear(load.indices[found[0]]).terms[var] == 1 else None


def box_copy(e: Emitter, s: For) -> None:
    """Emit the copy of the box that the loop *s* runs over."""
    box = _Box.of(s)
    if box is None:
        e.statement(For(s.var, s.extent, ForKind.SERIAL, s.body))
        return
    load, cond = source_of(box.copy)
    for part in conjuncts(cond) if cond is not None else ():
        _require_end(part, load)
    (rows, columns), tile = box.pieces, box.copy.buffer
    size = rows * columns * tile.dtype.bytes
    extents = (fixed(box.rows.extent), fixed(box.columns.extent))
    corners = product(range(0, extents[0], rows), range(0, extents[1], columns))
    for number, (row, column) in enumerate(corners):
        shared = f", {number % e.cluster}" if box.copy in e.shared else ""
        here: Mapping[Var, Expr] = {box.rows.var: as_expr(row), box.columns.var: as_expr(column)}
        at = tuple(substitute(i, here) for i in box.copy.indices)
        start = index(e, flat_index(e, tile, at)).text
        places = [index(e, linear(substitute(i, here)).to_expr()).text for i in load.indices]
        with e.by_the_first():
            e.line(
                f"{e.copies}.box<{size}{shared}>({e.boxes[box.source]}, &{e.place(tile)}[{start}], "
                f"{', '.join(reversed(places))});"
            )


def _require_end(cond: Expr, load: Load) -> None:
    """Check that *cond* only tells that an index of *load* is inside the tensor."""
    if isinstance(cond, Compare) and cond.op is CompareOp.LT:
        for at, extent in zip(load.indices, load.source.shape, strict=True):
            beyond = linear(cond.a - cond.b - at + as_expr(extent))
            if not beyond.terms and not beyond.const:
                return
    raise CodegenError(
        f"a box of {load.source.name} is copied under a condition",
        hint="only elements beyond the ends of a tensor are zeros",
    )


def begun_boxes(e: Emitter, body: Stmt, place: str) -> None:
    """Declare the barriers of the kernel *body*, if it copies boxes, at *place*, a C pointer."""
    if not e.boxes:
        return
    copies = sum(isinstance(s, AsyncCopy) for s in walk_stmts(body))
    boxes = [s for s in walk_stmts(body) if isinstance(s, For) and s.kind is ForKind.BULK]
    e.by_threads = copies > sum(isinstance(s.body, AsyncCopy) for s in boxes)
    e.need("boxes")
    waits = [s.pending for s in walk_stmts(body) if isinstance(s, Wait) and s.kind is Async.COPIES]
    if max(waits, default=0) + 2 > BARRIERS:
        raise CodegenError(
            f"a kernel leaves {max(waits)} groups of boxes in flight, more than the limit of "
            f"{BARRIERS - 2}",
            hint="copy fewer iterations ahead",
        )
    e.copies = e.names.fresh("copies")
    e.line(f"Boxes<{BARRIERS}, {e.cluster}> {e.copies}({place});")


_BARRIERS = """\
// Barriers in shared memory: a phase ends when the first thread has arrived and all bytes have.
__device__ __forceinline__ unsigned in_shared(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}
__device__ __forceinline__ void init_barrier(unsigned long long* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(in_shared(barrier)) : "memory");
}
__device__ __forceinline__ void arrive(unsigned long long* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(in_shared(barrier)), "r"(bytes) : "memory");
}
// Waits for the end of an even (0) or odd (1) phase.
__device__ __forceinline__ void wait_for_phase(unsigned long long* barrier, unsigned odd) {
  unsigned ended = 0;
  while (!ended) {
    asm volatile("{.reg .pred ended;"
                 "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;"
                 "selp.u32 %0, 1, 0, ended;}"
                 : "=r"(ended) : "r"(in_shared(barrier)), "r"(odd) : "memory");
  }
}"""

_CLUSTERS = """\
// All threads of the neighbouring blocks that run together arrive before any continues.
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}"""

_MAPS = """\
// How the copy engine reads a tensor: CUDA's CUtensorMap.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};"""


def _copy_box(rank: int) -> str:
    names = "xyzuv"[:rank]
    places = ", ".join(f"%{n + 3}" for n in range(rank))
    given = ", ".join(f'"r"({name})' for name in names)
    ints = ", ".join(f"int {name}" for name in names)
    last, mask = f", %{rank + 3}", ', "h"((unsigned short)((1 << Blocks) - 1))'
    starts = [
        f"""\
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes{kind} "
                 "[%0], [%1, {{{places}}}], [%2]{to};"
                 :: "r"(in_shared(to)), "l"(&from), "r"(in_shared(barrier)), {given}{more}
                 : "memory");"""
        for kind, to, more in (("", "", ""), (".multicast::cluster", last, mask))
    ]
    return f"""\
// Starts copying the box at these indices, innermost first, to shared memory: that of this block,
// or of all blocks that run together.
template <int Blocks> __device__ __forceinline__ void copy_box(
    const TensorMap& from, void* to, unsigned long long* barrier, {ints}) {{
  if constexpr (Blocks == 1) {{
{starts[0]}
  }} else {{
{starts[1]}
  }}
}}"""


_BOXES = """\
// Copies of boxes by the first thread of a block, in groups; all threads count these alike.
// Neighbouring blocks that run together share some boxes: one of them copies to all.
template <int N, int Blocks> struct Boxes {
  unsigned long long* barriers;
  unsigned begun, seen, bytes;
  __device__ __forceinline__ explicit Boxes(unsigned long long* barriers)
      : barriers(barriers), begun(0), seen(0), bytes(0) {
    if (first()) {
      for (int n = 0; n < N; ++n) {
        init_barrier(barriers + n);
      }
      fence_shared();
    }
    if constexpr (Blocks == 1) {
      __syncthreads();
    } else {
      sync_cluster();
    }
  }
  static __device__ __forceinline__ bool first() {
    return (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
  }
  // By is the number of the block that copies for all, or -1 if each does.
  template <int Size, int By = -1, typename... Places>
  __device__ __forceinline__ void box(const TensorMap& from, void* to, Places... places) {
    unsigned long long* barrier = barriers + begun % N;
    if constexpr (By < 0) {
      copy_box<1>(from, to, barrier, places...);
    } else if (blockIdx.x % Blocks == By) {
      copy_box<Blocks>(from, to, barrier, places...);
    }
    bytes += Size;
  }
  __device__ __forceinline__ void commit() {
    if (first()) {
      arrive(barriers + begun % N, bytes);
      bytes = 0;
    }
    ++begun;
  }
  // Waits for all groups but the last few.
  template <int Pending> __device__ __forceinline__ void wait() {
    for (; seen + Pending < begun; ++seen) {
      wait_for_phase(barriers + seen % N, seen / N & 1);
    }
  }
};"""

BOX_HELPERS: Mapping[str, str] = {
    "tensor_map": _MAPS,
    "barriers": _BARRIERS,
    "clusters": _CLUSTERS,
    "copy_box": "\n".join(map(_copy_box, _RANKS)),
    "boxes": _BOXES,
}
"""In order of emission; after those that order writes (``order``)."""

BOX_NEEDS: Mapping[str, tuple[str, ...]] = {
    "boxes": ("order", "tensor_map", "barriers", "clusters", "copy_box"),
}
