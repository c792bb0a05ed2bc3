"""The module of a compiled program's entry: its constants, ``init``, and the other functions.

``run`` computes addresses and calls the kernels in order.  It allocates nothing, takes no locks and
keeps all state in the context and the caller's tensors, so several contexts can run concurrently.
"""

from __future__ import annotations

from ansorpy.codegen.llvm.emit.text import ATTRIBUTES, FunctionText
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.clock import stamp_source
from ansorpy.errors import CodegenError
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.runtime.constants import scratch_bytes, workspace_bytes
from ansorpy.runtime.control import Argument, MemoryRegion
from ansorpy.runtime.cpu_features import is_x86
from ansorpy.runtime.entry.cpu_check import CHECK, emit_cpu_check
from ansorpy.runtime.entry.run import emit_calls, emit_plan, emit_run
from ansorpy.runtime.entry.sizes import emit_layout
from ansorpy.runtime.entry.source import DONE, NEW, EntrySource, constants
from ansorpy.runtime.entry.text import at, metadata_global, require
from ansorpy.runtime.library.data_object import has_large_sections
from ansorpy.runtime.library.storage import Places
from ansorpy.runtime.status import Status
from ansorpy.target import Target

__all__ = ["baseline", "build_entry", "emit_entry"]

_PAGE = 4096
"""The smallest page size of any supported machine."""
_HUGE_PAGES = 14
"""``MADV_HUGEPAGE`` of Linux; systems without it refuse the advice, which does no harm."""
_MEMORY = (
    "declare i32 @madvise(ptr, i64, i32)",
    "declare ptr @aligned_alloc(i64, i64)",
    "declare void @free(ptr)",
)


def build_entry(source: EntrySource) -> bytes:
    """Build the object file of the entry.

    It is compiled for the architecture's baseline CPU: it must run even where the kernels cannot.
    """
    return compile_ir(emit_entry(source), baseline(source.plan.target))


def baseline(target: Target) -> Target:
    """Return the baseline target of *target*'s architecture: its code runs on all of its CPUs."""
    return Target.parse(target.triple)


def emit_entry(source: EntrySource) -> str:
    """Emit the module: ``<name>_init``, ``<name>_plan``, ``<name>_run``, helpers.

    Raises:
        CodegenError: An x86 library was requested on another architecture, whose LLVM cannot
            assemble the CPU check.
    """
    plan = source.plan
    if source.features and not is_x86(Target.host()):
        raise CodegenError(f"a library for {plan.target.triple} can only be made on an x86 machine")
    symbols = sorted(code.symbol for code in source.plan.objects)
    parts = [
        f'target triple = "{source.plan.target.triple}"\n',
        *(f"declare i32 @{symbol}(ptr, ptr, i32)" for symbol in symbols),
        "declare i32 @getpid()",
        "declare i32 @sched_yield()",
        *_MEMORY,
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"@state = internal global i32 {NEW}, align 4",
        *_constant_globals(source),
        emit_cpu_check(source.features),
        _emit_make_constants(source),
        _emit_init(source),
        *([emit_layout([told.dim for told in plan.told], plan.slots)] if plan.slots else []),
        emit_plan(source),
        emit_run(source),
        f"{ATTRIBUTES}\n",
    ]
    return "\n".join(parts)


def _constant_globals(source: EntrySource) -> list[str]:
    plan, name = source.plan, source.name
    lines = []
    if source.is_timed:
        count = 1 + len(plan.steps)
        lines.append(f"@{name}_stamps = global [{count} x i64] zeroinitializer, align 8")
        lines.append(stamp_source(records=source.is_traced))
    if source.metadata:
        lines.append(metadata_global(name, source.metadata))
    places = source.places
    if places is None:
        lines.append(f"@{name}_pool = global ptr null")
        return lines
    # They may be farther away than the 2 GiB that code reaches by its own address.
    far = ', code_model "large"' if has_large_sections(plan.target) else ""
    kind = f"[{places.made_bytes} x i8]"
    lines.append(f"@{places.symbol} = external hidden global i8{far}")
    lines.append(f"@made = internal global {kind} zeroinitializer{far}, align {_PAGE}")
    return lines


def _emit_make_constants(source: EntrySource) -> str:
    """Emit ``i32 @make_constants()``, which packs constants, touches the pages of those that are
    packed already, and returns a status."""
    text, plan, places = FunctionText("internal i32 @make_constants()"), source.plan, source.places
    if places is not None and places.in_file:
        first = min(places.in_file.values())
        size = max(places.in_file[offset] + array.nbytes for offset, array in plan.direct) - first
        _emit_touch(text, at(text, f"@{places.symbol}", first), size)
    if places is None or not plan.packs:
        text.emit("ret i32 0")
        return text.render()
    text.define(f"call i32 @madvise(ptr @made, i64 {places.made_bytes}, i32 {_HUGE_PAGES})")
    size = scratch_bytes(plan)
    scratch = text.define(f"call ptr @aligned_alloc(i64 {ALIGNMENT_BYTES}, i64 {size})")
    require(text, f"icmp ne ptr {scratch}, null", Status.NO_MEMORY)
    code = text.define(f"call i32 @pack(ptr {scratch})")
    text.emit(f"call void @free(ptr {scratch})")
    text.emit(f"ret i32 {code}")
    return f"{_emit_pack(source, places)}\n{text.render()}"


def _emit_pack(source: EntrySource, places: Places) -> str:
    """Emit ``i32 @pack(ptr %scratch)``, which calls the plan's packs."""
    text, plan = FunctionText("internal i32 @pack(ptr %scratch)"), source.plan
    constant, start = constants(text, source), workspace_bytes(plan)

    def address(argument: Argument) -> str:
        if argument.region is MemoryRegion.RAW:
            return at(text, f"@{places.symbol}", places.raw[argument.number])
        assert isinstance(argument.offset, int)
        if argument.region is MemoryRegion.SCRATCH:
            return at(text, "%scratch", start + argument.offset)
        return constant(argument.offset)

    emit_calls(text, plan.packs, address, "%scratch", str(plan.threads))
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
    """Emit ``init``: the first caller does the work; other callers wait and get its status.

    A child process does the work itself if it was forked from another thread during that.
    """
    text = FunctionText(f"i32 @{source.name}_init()")
    busy = text.define(f"sub i32 0, {text.define('call i32 @getpid()')}")
    text.branch("look")
    text.start_block("look")
    state = text.define("load atomic i32, ptr @state acquire, align 4")
    text.branch_if(text.define(f"icmp sgt i32 {state}, {NEW}"), "answer", "open")
    text.start_block("open")
    text.branch_if(text.define(f"icmp eq i32 {state}, {busy}"), "wait", "begin")
    text.start_block("wait")
    text.emit("call i32 @sched_yield()")
    text.branch("look")
    text.start_block("begin")
    pair = text.define(f"cmpxchg ptr @state, i32 {state}, i32 {busy} acq_rel acquire")
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
    text.emit(f"store atomic i32 {text.define(f'add i32 {code}, {DONE}')}, "
              "ptr @state release, align 4")  # fmt: skip
    text.emit(f"ret i32 {code}")
    text.start_block("answer")
    text.emit(f"ret i32 {text.define(f'sub i32 {state}, {DONE}')}")
    return text.render()
