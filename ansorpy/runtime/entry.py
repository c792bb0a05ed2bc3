"""Entry functions of a compiled program as LLVM IR: init, context size and run.

``run`` computes addresses and calls the kernels in order.  It allocates nothing, takes no locks and
keeps all state in the context and the caller's tensors, so several contexts can run concurrently.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.clock import STAMP, STAMP_SOURCE
from ansorpy.errors import CodegenError
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.cpu_features import CHECK, emit_cpu_check, is_x86
from ansorpy.runtime.entry_sizes import Sizes, emit_array, emit_extent, emit_size
from ansorpy.runtime.execution_plan import Argument, ExecutionPlan, Memory, Step
from ansorpy.runtime.ports import MAX_RANK, Port
from ansorpy.runtime.sizes import told_by
from ansorpy.runtime.status import Status
from ansorpy.target import Target

__all__ = ["Constants", "EntrySource", "baseline", "build_entry", "emit_entry"]

_TENSOR_BYTES = 8 + 8 * MAX_RANK
_ALIGNMENT = 64
_PAGE = 4096
"""The smallest page size of any supported machine."""
_NEW, _BUSY, _DONE = 0, 1, 2
"""States of ``init``; after it has returned status *code*, the state is ``_DONE + code``."""


class Constants(Enum):
    """Where the entry finds the constant pool.

    GIVEN: the loader stores its address in ``<name>_pool``.  PACKED: linked in ready to read, as
    ``<name>_pool_data``.  ORIGINAL: ``init`` builds it from ``<name>_raw_data``: the constants to
    be packed, followed by those read as they are.
    """

    GIVEN = "given"
    PACKED = "packed"
    ORIGINAL = "original"


@dataclass(frozen=True)
class EntrySource:
    """Input for generating an entry.

    Args:
        name: Prefix of all symbols.
        metadata: Contents of ``<name>_metadata``; omitted when empty.
        features: CPU features that ``init`` checks.
        is_timed: Each run writes its start time and the end time of each call, in nanoseconds, to
            ``i64 <name>_stamps[1 + calls]``; only one run at a time is then possible.
    """

    plan: ExecutionPlan
    name: str
    constants: Constants
    metadata: str = ""
    features: tuple[str, ...] = ()
    is_timed: bool = False


def build_entry(source: EntrySource) -> bytes:
    """Build the object file of the entry.

    It is compiled for the architecture's baseline CPU: it must run even where the kernels cannot.

    Raises:
        CodegenError: An x86 library was requested on another architecture, whose LLVM cannot
            assemble the CPU check.
    """
    target = source.plan.target
    if source.features and not is_x86(Target.host()):
        raise CodegenError(f"a library for {target.triple} can only be made on an x86 machine")
    _enable_inline_assembly()
    return compile_ir(emit_entry(source), baseline(target))


def baseline(target: Target) -> Target:
    """Return the baseline target of *target*'s architecture: its code runs on all of its CPUs."""
    return Target.parse(target.triple)


def _enable_inline_assembly() -> None:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmparser()


def emit_entry(source: EntrySource) -> str:
    """Emit the module: ``<name>_init``, ``<name>_context_bytes``, ``<name>_run``, helpers."""
    symbols = sorted(code.symbol for code in source.plan.objects)
    if source.constants is not Constants.ORIGINAL:
        symbols = sorted({step.code.symbol for step in source.plan.steps})
    parts = [
        f'target triple = "{source.plan.target.triple}"\n',
        *(f"declare i32 @{symbol}(ptr, ptr, i32)" for symbol in symbols),
        "declare i32 @sched_yield()",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"@state = internal global i32 {_NEW}, align 4",
        *_constant_globals(source),
        emit_cpu_check(source.features),
        _emit_make_constants(source),
        _emit_init(source),
        _emit_context_bytes(source),
        _emit_run(source),
        "attributes #0 = { nounwind }\n",
    ]
    return "\n".join(parts)


def _constant_globals(source: EntrySource) -> list[str]:
    plan, name = source.plan, source.name
    lines = []
    if source.is_timed:
        count = 1 + len(plan.steps)
        lines.append(f"@{name}_stamps = global [{count} x i64] zeroinitializer, align 8")
        lines.append(STAMP_SOURCE)
    if source.metadata:
        data = source.metadata.encode() + b"\0"
        text = "".join(f"\\{byte:02X}" for byte in data)
        lines.append(f'@{name}_metadata = constant [{len(data)} x i8] c"{text}"')
    if source.constants is Constants.GIVEN:
        lines.append(f"@{name}_pool = global ptr null")
    elif source.constants is Constants.PACKED:
        if plan.pool_bytes:
            lines.append(f"@{name}_pool_data = external hidden global i8")
    else:
        size = max(1, plan.pool_bytes)
        lines.append(f"@pool = internal global [{size} x i8] zeroinitializer, align {_ALIGNMENT}")
        if plan.packs or plan.direct:
            lines.append(f"@{name}_raw_data = external hidden global i8")
        scratch = max((step.code.workspace_bytes(1) for step in plan.packs), default=1)
        lines.append(
            f"@scratch = internal global [{max(1, scratch)} x i8] zeroinitializer, "
            f"align {_ALIGNMENT}"
        )
    return lines


def _pool_base(text: FunctionText, source: EntrySource) -> str:
    if source.constants is Constants.GIVEN:
        return text.define(f"load ptr, ptr @{source.name}_pool, align 8")
    if source.constants is Constants.PACKED:
        return f"@{source.name}_pool_data" if source.plan.pool_bytes else "null"
    return "@pool"


def _emit_make_constants(source: EntrySource) -> str:
    """Emit ``i32 @make_constants()``, which fills the pool or touches its pages and returns a
    status."""
    text = FunctionText("internal i32 @make_constants()")
    plan = source.plan
    if source.constants is not Constants.ORIGINAL:
        if source.constants is Constants.PACKED and plan.pool_bytes:
            _emit_touch(text, _pool_base(text, source), plan.pool_bytes)
        text.emit("ret i32 0")
        return text.render()
    raw = f"@{source.name}_raw_data"
    start = plan.raw_bytes
    for offset, array in plan.direct:
        size = array.nbytes
        to, source_ = _at(text, "@pool", offset), _at(text, raw, start)
        text.emit(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source_}, i64 {size}, i1 false)"
        )
        start += -(-size // _ALIGNMENT) * _ALIGNMENT
    bases = {Memory.POOL: "@pool", Memory.RAW: raw}

    def address(argument: Argument) -> str:
        return _at(text, bases[argument.region], argument.offset)

    _emit_calls(text, plan.packs, address, "@scratch", "1")
    return text.render()


def _emit_touch(text: FunctionText, base: str, size: int) -> None:
    """Read one byte of each page, so that the first run need not page in the file."""
    text.branch("touch")
    text.start_block("touch")
    after = text.fresh()
    offset = text.define(f"phi i64 [ 0, %entry ], [ {after}, %touch ]")
    place = text.define(f"getelementptr i8, ptr {base}, i64 {offset}")
    text.define(f"load volatile i8, ptr {place}, align 1")
    text.emit(f"{after} = add i64 {offset}, {_PAGE}")
    text.branch_if(text.define(f"icmp ult i64 {after}, {size}"), "touch", "touched")
    text.start_block("touched")


def _emit_init(source: EntrySource) -> str:
    """Emit ``init``: the first caller does the work; other callers wait and get its status."""
    text = FunctionText(f"i32 @{source.name}_init()")
    pair = text.define(f"cmpxchg ptr @state, i32 {_NEW}, i32 {_BUSY} acq_rel acquire")
    first = text.define(f"extractvalue {{ i32, i1 }} {pair}, 1")
    text.branch_if(first, "work", "look")
    text.start_block("work")
    text.branch_if(text.define(f"call i1 {CHECK}()"), "make", "refuse")
    text.start_block("make")
    made = text.define("call i32 @make_constants()")
    text.branch("finish")
    text.start_block("refuse")
    text.branch("finish")
    text.start_block("finish")
    code = text.define(f"phi i32 [ {made}, %make ], [ {Status.WRONG_CPU.value}, %refuse ]")
    text.emit(f"store atomic i32 {text.define(f'add i32 {code}, {_DONE}')}, "
              "ptr @state release, align 4")  # fmt: skip
    text.emit(f"ret i32 {code}")
    text.start_block("look")
    state = text.define("load atomic i32, ptr @state acquire, align 4")
    text.branch_if(text.define(f"icmp eq i32 {state}, {_BUSY}"), "wait", "answer")
    text.start_block("wait")
    text.emit("call i32 @sched_yield()")
    text.branch("look")
    text.start_block("answer")
    text.emit(f"ret i32 {text.define(f'sub i32 {state}, {_DONE}')}")
    return text.render()


def _emit_context_bytes(source: EntrySource) -> str:
    """Emit the context size: arena, largest workspace of any call, and alignment padding."""
    text = FunctionText(f"i64 @{source.name}_context_bytes(i32 %threads)")
    some = text.define("icmp sgt i32 %threads, 1")
    threads = text.define(f"select i1 {some}, i32 %threads, i32 1")
    count = text.define(f"zext i32 {threads} to i64")
    largest = "0"
    for shared, each in sorted(_workspaces(source.plan)):
        size = text.define(f"add i64 {text.define(f'mul i64 {count}, {each}')}, {shared}")
        more = text.define(f"icmp ugt i64 {size}, {largest}")
        largest = text.define(f"select i1 {more}, i64 {size}, i64 {largest}")
    total = text.define(f"add i64 {largest}, {source.plan.arena_bytes + _ALIGNMENT - 1}")
    text.emit(f"ret i64 {total}")
    return text.render()


def _workspaces(plan: ExecutionPlan) -> set[tuple[int, int]]:
    return {(step.code.shared_bytes, step.code.thread_bytes) for step in plan.steps}


def _emit_run(source: EntrySource) -> str:
    plan = source.plan
    text = FunctionText(
        f"i32 @{source.name}_run(ptr %context, ptr %inputs, ptr %outputs, i32 %threads)"
    )
    state = text.define("load atomic i32, ptr @state acquire, align 4")
    _require(text, f"icmp eq i32 {state}, {_DONE}", Status.NOT_INITIALISED)
    _require(text, "icmp sgt i32 %threads, 0", Status.BAD_THREADS)
    for table in ("%context", "%inputs", "%outputs"):
        _require(text, f"icmp ne ptr {table}, null", Status.NULL_POINTER)
    sizes = _emit_sizes(text, plan)
    data = {
        region: [_tensor(text, table, number, port, sizes) for number, port in enumerate(ports)]
        for region, table, ports in (
            (Memory.INPUT, "%inputs", plan.inputs), (Memory.OUTPUT, "%outputs", plan.outputs),
        )
    }  # fmt: skip
    for number, port in enumerate(plan.inputs):
        _check_shape(text, number, port, sizes)
    for number, port in enumerate(plan.outputs):
        _store_shape(text, number, port, sizes)
    base = _aligned(text, "%context")
    workspace = _at(text, base, plan.arena_bytes)
    bases = {Memory.ARENA: base, Memory.POOL: _pool_base(text, source)}

    def address(argument: Argument) -> str:
        given = data.get(argument.region)
        base = bases[argument.region] if given is None else given[argument.number]
        return _at(text, base, argument.offset)

    stamps = f"@{source.name}_stamps" if source.is_timed else None
    _emit_calls(text, plan.steps, address, workspace, "%threads", stamps, sizes)
    return text.render()


def _emit_calls(
    text: FunctionText,
    steps: tuple[Step, ...],
    address: object,
    workspace: str,
    threads: str,
    stamps: str | None = None,
    sizes: Sizes | None = None,
) -> None:
    """Call *steps* in order; return the first nonzero status, else 0."""
    assert callable(address)
    most = max((len(step.args) + 1 for step in steps), default=1)
    arrays = {dims: emit_array(text, dims, sizes or {}) for dims in {s.dims for s in steps} if dims}
    table = text.define(f"alloca [{most} x ptr], align 8")
    if stamps is not None:
        text.emit(f"call void @{STAMP}(ptr {stamps})")
    for number, step in enumerate(steps, start=1):
        for position, argument in enumerate(step.args):
            slot = _at(text, table, 8 * position)
            text.emit(f"store ptr {address(argument)}, ptr {slot}, align 8")
        if step.dims:
            slot = _at(text, table, 8 * len(step.args))
            text.emit(f"store ptr {arrays[step.dims]}, ptr {slot}, align 8")
        symbol = step.code.symbol
        status = text.define(f"call i32 @{symbol}(ptr {table}, ptr {workspace}, i32 {threads})")
        _return_unless(text, f"icmp eq i32 {status}, 0", status)
        if stamps is not None:
            text.emit(f"call void @{STAMP}(ptr {_at(text, stamps, 8 * number)})")
    text.emit("ret i32 0")


def _require(text: FunctionText, condition: str, otherwise: Status) -> None:
    _return_unless(text, condition, str(otherwise.value))


def _return_unless(text: FunctionText, condition: str, value: str) -> None:
    good, bad = text.fresh_label("good"), text.fresh_label("bad")
    text.branch_if(text.define(condition), good, bad)
    text.start_block(bad)
    text.emit(f"ret i32 {value}")
    text.start_block(good)


def _tensor(text: FunctionText, table: str, number: int, port: Port, sizes: Sizes) -> str:
    """Load a tensor's data pointer and check that it is not null, unless the tensor is empty."""
    data = text.define(f"load ptr, ptr {_at(text, table, number * _TENSOR_BYTES)}, align 8")
    if isinstance(port.bytes, int):
        if port.bytes:
            _require(text, f"icmp ne ptr {data}, null", Status.NULL_POINTER)
        return data
    is_empty = text.define(f"icmp eq i64 {emit_extent(text, port.bytes, sizes)}, 0")
    is_there = text.define(f"icmp ne ptr {data}, null")
    _require(text, f"or i1 {is_empty}, {is_there}", Status.NULL_POINTER)
    return data


def _emit_sizes(text: FunctionText, plan: ExecutionPlan) -> Sizes:
    """Read the size of each dimension off the inputs' shapes, and check its range."""
    sizes: dict[Dim, str] = {}
    for told in told_by(plan.inputs):
        sizes[told.dim], inside = emit_size(text, told, _extent(text, told.number, told.axis))
        _require(text, f"icmp eq i1 {inside}, true", Status.WRONG_SHAPE)
    return sizes


def _extent(text: FunctionText, number: int, axis: int) -> str:
    """Load an extent of an input."""
    slot = _at(text, "%inputs", number * _TENSOR_BYTES + 8 + 8 * axis)
    return text.define(f"load i64, ptr {slot}, align 8")


def _check_shape(text: FunctionText, number: int, port: Port, sizes: Sizes) -> None:
    """Check a tensor's shape with one branch, by or-ing the differences of all extents."""
    difference = "0"
    for axis, extent in enumerate(port.shape):
        given = _extent(text, number, axis)
        apart = text.define(f"xor i64 {given}, {emit_extent(text, extent, sizes)}")
        difference = text.define(f"or i64 {difference}, {apart}")
    if port.shape:
        _require(text, f"icmp eq i64 {difference}, 0", Status.WRONG_SHAPE)


def _store_shape(text: FunctionText, number: int, port: Port, sizes: Sizes) -> None:
    for axis, extent in enumerate(port.shape):
        slot = _at(text, "%outputs", number * _TENSOR_BYTES + 8 + 8 * axis)
        text.emit(f"store i64 {emit_extent(text, extent, sizes)}, ptr {slot}, align 8")


def _aligned(text: FunctionText, pointer: str) -> str:
    """Round *pointer* up to the alignment of workspaces and arena values."""
    number = text.define(f"ptrtoint ptr {pointer} to i64")
    skip = text.define(f"and i64 {text.define(f'sub i64 0, {number}')}, {_ALIGNMENT - 1}")
    return text.define(f"getelementptr i8, ptr {pointer}, i64 {skip}")


def _at(text: FunctionText, base: str, offset: int) -> str:
    return text.define(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base
