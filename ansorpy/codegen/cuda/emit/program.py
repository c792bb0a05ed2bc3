"""Emit a loop program as CUDA C: kernels in launch order, and their launch plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ansorpy.codegen.accesses import buffers_used
from ansorpy.codegen.clike.comments import in_comment, layout_comment
from ansorpy.codegen.clike.names import identifier
from ansorpy.codegen.clike.writer import Tables
from ansorpy.codegen.cuda.emit.boxes import begun_boxes, sources_in
from ansorpy.codegen.cuda.emit.clusters import cluster_of
from ansorpy.codegen.cuda.emit.emitter import C_TYPES, Emitter
from ansorpy.codegen.cuda.emit.expressions import EXPRESSIONS
from ansorpy.codegen.cuda.emit.prelude import HELPERS, prelude
from ansorpy.codegen.cuda.emit.statements import STATEMENTS
from ansorpy.codegen.cuda.emit.words import WORDS
from ansorpy.codegen.cuda.launch.plan import (
    ALIGNMENT,
    Argument,
    BoxedTensor,
    Grid,
    Launch,
    LaunchPlan,
)
from ansorpy.codegen.cuda.passes.lower_fragments import held_by_lanes
from ansorpy.codegen.cuda.passes.residency import blocks_at_once
from ansorpy.codegen.cuda.passes.split_kernels import KernelNest, kernel_nests, workspace_offsets
from ansorpy.codegen.cuda.passes.unroll_registers import (
    MOST_STATEMENTS,
    unroll_registers,
    written_out,
)
from ansorpy.codegen.cuda.passes.unroll_sums import longest_bodies
from ansorpy.codegen.cuda.passes.write_out_choices import written_choices
from ansorpy.codegen.passes.expand_instructions import expand_instructions
from ansorpy.codegen.passes.expand_powers import expand_powers
from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.codegen.passes.split_sized_vectors import split_sized_vectors
from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.overwrite import may_overlap
from ansorpy.ir.dtypes import DType
from ansorpy.ir.loops import BARRIER_BYTES, Alloc, Buffer, Program, Scope, walk_stmts
from ansorpy.ir.rewrite.simplify import simplify_stmt
from ansorpy.ir.symbols import Dim
from ansorpy.target import Target

__all__ = ["CudaSource", "emit_cuda"]


@dataclass(frozen=True)
class CudaSource:
    """Kernels as C text, and the names of the ``helpers`` they call."""

    helpers: tuple[str, ...]
    kernels: str
    plan: LaunchPlan

    @property
    def text(self) -> str:
        """The translation unit."""
        parts = [prelude(self.helpers), self.kernels]
        return "\n\n".join(part for part in parts if part)


def emit_cuda(program: Program, target: Target, symbol: str, *, several: bool = True) -> CudaSource:
    """Emit *program* as CUDA C, with kernels named after *symbol*.

    Dense arguments must be aligned to 16 bytes, arguments with strides to one element.  The sizes
    of dimensions follow the buffers.  With *several*, registers are limited so that several blocks
    fit on an SM, if the estimated register need allows it.

    Raises:
        CodegenError: The program uses a feature that a GPU does not have (parallel loops), waits
            for other blocks, launches kernels in a loop, or unrolls too much for a compiler.
    """
    if not target.capability:
        raise CodegenError(f"target {target.name} is not a GPU", hint="choose one such as sm_90")
    overlapping, dims = may_overlap(program), program.dims
    program = _prepared(program, target)
    offsets, workspace_bytes = workspace_offsets(program.body)
    found = kernel_nests(program.body)
    helpers: dict[str, None] = {}
    texts, launches = [], []
    for number, nest in enumerate(found):
        name = identifier(symbol if len(found) == 1 else f"{symbol}_{number}", WORDS)
        _require_moderate(name, nest)
        kernel = _Kernel(
            name, nest, program, offsets, target, several=several, overlapping=overlapping
        )
        texts.append(kernel.text(helpers))
        launches.append(kernel.launch)
    used = tuple(name for name in HELPERS if name in helpers)
    plan = LaunchPlan(tuple(launches), workspace_bytes, dims)
    return CudaSource(used, "\n\n".join(texts) + "\n", plan)


def _require_moderate(name: str, nest: KernelNest) -> None:
    size = written_out(nest.body)
    if size > MOST_STATEMENTS:
        raise CodegenError(
            f"{name} has {size} statements after unrolling, more than the limit of "
            f"{MOST_STATEMENTS}",
            hint="unroll less, or use smaller tiles per thread",
        )


def _prepared(program: Program, target: Target) -> Program:
    """Run the passes that precede emission, in order."""
    program = split_sized_vectors(expand_instructions(program), target, masked=False)
    program = held_by_lanes(program)
    program = written_choices(expand_powers(program))
    program = unroll_registers(program, target)
    # Each register of a thread holds one element; half of them stay free for operands, addresses.
    registers = target.vector_registers // 2 + 1
    program = promote(program, replace(target, vector_bits=32, vector_registers=registers))
    program = longest_bodies(program)
    return program.with_body(simplify_stmt(program.body))


class _Kernel:
    """One kernel being emitted: the buffers it reads and writes, and its shared memory."""

    def __init__(
        self, name: str, nest: KernelNest, program: Program, offsets: dict[Buffer, int],
        target: Target,
        *, several: bool, overlapping: frozenset[Buffer],
    ):  # fmt: skip
        self.overlapping = overlapping
        self.name = name
        self.nest = nest
        self.used = buffers_used(nest.body)
        self.given = [
            (param.buffer, _parameter(param.buffer, number))
            for number, param in enumerate(program.params)
            if param.buffer in self.used
        ] + [
            (buffer, Argument(buffer.name, "workspace", offset))
            for buffer, offset in offsets.items()
            if buffer in self.used
        ]
        self.boxed = sources_in(nest.body)
        self.cluster = cluster_of(nest)
        self.shared = [
            s.buffer for s in walk_stmts(nest.body)
            if isinstance(s, Alloc) and s.buffer.scope is Scope.SHARED
        ]  # fmt: skip
        self.dims = program.dims
        # Strictest alignment first, so that no padding is needed.
        self.shared.sort(key=lambda buffer: -buffer.shared_alignment)
        size = sum(buffer.shared_bytes for buffer in self.shared)
        size += BARRIER_BYTES * bool(self.boxed)
        self.dynamic = size > target.max_shared_bytes or self.cluster.blocks > 1
        self.launch = Launch(
            name, nest.grid, nest.block,
            (*(argument for _, argument in self.given), *self._maps(), *_sizes(self.dims)),
            0 if self.dynamic else size, size if self.dynamic else 0, nest.where,
        )  # fmt: skip
        blocks = blocks_at_once(nest.body, self.launch, target) if several else 1
        self.bounds = f"{self.launch.threads}" + (f", {blocks}" if blocks > 1 else "")

    def text(self, helpers: dict[str, None]) -> str:
        """Emit the kernel as C; *helpers* receives the names of the functions it calls."""
        written = frozenset(buffer for buffer, is_written in self.used.items() if is_written)
        e = Emitter(Tables(EXPRESSIONS, STATEMENTS), self.nest.extents, written, helpers)
        e.cluster, e.shared = self.cluster
        parameters = [self._parameter(e, buffer) for buffer, _ in self.given]
        parameters += [self._map(e, source) for source in self.boxed]
        parameters += [f"{e.size(dim)} /* {in_comment(str(dim))} */" for dim in self.dims]
        begun_boxes(e, self.nest.body, self._declare_shared(e))
        e.statement(self.nest.body)
        inside = ",\n    ".join(parameters)
        grid, block = _counted(self.launch.grid, "block"), _counted(self.launch.block, "thread")
        together = f"__cluster_dims__({e.cluster}, 1, 1) " if e.cluster > 1 else ""
        return "\n".join(
            [
                f"// {in_comment(f'{grid} of {block}{_condition(self.launch)}')}",
                f'extern "C" __global__ void {together}__launch_bounds__({self.bounds}) '
                f"{self.name}(",
                f"    {inside}) {{",
                *e.lines,
                "}",
            ]
        )

    def _parameter(self, e: Emitter, buffer: Buffer) -> str:
        if buffer.dtype.is_half:
            e.need(buffer.dtype.value)
        access = "" if self.used[buffer] else "const "
        kind = C_TYPES[buffer.dtype]
        alone = "" if buffer in self.overlapping else "__restrict__ "
        return f"{access}{kind}* {alone}{e.names.give(buffer)} {layout_comment(buffer)}"

    def _maps(self) -> Iterator[Argument]:
        """The arguments that are maps of tensors, which the kernel copies in boxes."""
        given = dict(self.given)
        for buffer, form in self.boxed:
            yield replace(given[buffer], boxes=form)

    def _map(self, e: Emitter, source: tuple[Buffer, BoxedTensor]) -> str:
        buffer, form = source
        e.need("tensor_map")
        e.boxes[source] = name = e.names.fresh(f"{e.place(buffer)}_boxes")
        extents = ", ".join(map(str, form.box))
        return f"const __grid_constant__ TensorMap {name} /* [{extents}] */"

    def _declare_shared(self, e: Emitter) -> str:
        """Declare the tiles; returns where barriers are, as a C pointer."""
        if self.dynamic:
            most = self.shared[0].shared_alignment
            e.line(f"extern __shared__ __align__({most}) unsigned char shared_memory[];")
        offset = 0
        for buffer in self.shared:
            name, kind = e.names.give(buffer), C_TYPES[buffer.dtype]
            shape = ", ".join(map(str, buffer.shape))
            if self.dynamic:
                place = f"reinterpret_cast<{kind}*>(shared_memory + {offset})"
                e.line(f"{kind}* const {name} = {place};  // [{shape}]")
            else:
                aligned = f"__align__({buffer.shared_alignment})"
                e.line(f"__shared__ {aligned} {kind} {name}[{buffer.span}];  // [{shape}]")
            offset += buffer.shared_bytes
        barriers = "unsigned long long"
        if self.dynamic or not self.boxed:
            return f"reinterpret_cast<{barriers}*>(shared_memory + {offset})"
        name = e.names.fresh("barriers")
        e.line(f"__shared__ {barriers} {name}[{BARRIER_BYTES // 8}];")
        return name


def _parameter(buffer: Buffer, number: int) -> Argument:
    alignment = ALIGNMENT if buffer.strides is None else buffer.dtype.bytes
    return Argument(buffer.name, "parameter", number, alignment)


def _sizes(dims: Sequence[Dim]) -> Iterator[Argument]:
    for number, dim in enumerate(dims):
        yield Argument(dim.name, "size", number, DType.INT64.bytes)


def _condition(launch: Launch) -> str:
    """When a kernel is launched: `` if 8 - n > 0``."""
    conditions = " and ".join(f"{extent} > 0" for extent in launch.where)
    return f", if {conditions}" if conditions else ""


def _counted(extents: Grid, what: str) -> str:
    """Format extents: ``3 blocks``, ``4 x 8 x 1 threads``, ``(n + 31)//32 blocks``."""
    x, y, z = extents
    number = f"{x}" if (y, z) == (1, 1) else f"{x} x {y} x {z}"
    return f"{number} {what}" if number == "1" else f"{number} {what}s"
