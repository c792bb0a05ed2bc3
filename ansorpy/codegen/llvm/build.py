"""Loop program to object code: emit, run the few passes that matter, generate machine code."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit import emit_module
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import Program
from ansorpy.target import Target

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["ObjectCode", "assembly", "build", "compile_ir"]


@dataclass(frozen=True)
class ObjectCode:
    """A relocatable object that defines *symbol* with the kernel ABI.

    ``int32_t symbol(void *const *args, void *workspace, int32_t threads)``, whose workspace needs
    ``shared_bytes + threads * thread_bytes`` bytes on a 64-byte boundary.  The code of a program
    for a GPU is what :func:`ansorpy.codegen.cuda.packed.packed` makes.
    """

    symbol: str
    code: bytes
    shared_bytes: int
    thread_bytes: int
    build_s: float
    digest: str

    def workspace_bytes(self, threads: int) -> int:
        """Bytes of workspace one call with *threads* threads needs."""
        return self.shared_bytes + threads * self.thread_bytes


def build(program: Program, target: Target, *, symbol: str, prefetch: bool = False) -> ObjectCode:
    """Compile *program* for *target*; it need not be this machine.

    With *prefetch*, constants are expected outside a core's own caches and asked for ahead.

    Raises:
        CodegenError: The program uses what a CPU does not have, or LLVM refuses the module.
    """
    start = time.perf_counter()
    text, plan = emit_module(program, target, symbol, prefetch)
    code = compile_ir(text, target)
    return ObjectCode(
        symbol,
        code,
        plan.shared_bytes,
        plan.thread_bytes,
        time.perf_counter() - start,
        hashlib.blake2b(code, digest_size=16).hexdigest(),
    )


@lru_cache(maxsize=128)
def compile_ir(text: str, target: Target) -> bytes:
    """The object file of LLVM IR *text*, after the optimisation passes; the last ones are kept.

    Finalists and the default schedule are not compiled twice, nor is packing code that several
    candidates share.
    """
    machine, module = _optimised(text, target)
    code: bytes = machine.emit_object(module)
    return code


def assembly(text: str, target: Target) -> str:
    """The machine code of LLVM IR *text* as assembly, for people."""
    machine, module = _optimised(text, target)
    listing: str = machine.emit_assembly(module)
    return listing


def _optimised(text: str, target: Target) -> tuple[binding.TargetMachine, binding.ModuleRef]:
    from llvmlite import binding

    machine = _machine(target)
    try:
        module = binding.parse_assembly(text)
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the generated module: {error}") from error
    module.data_layout = str(machine.target_data)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(1))
    passes = binding.create_new_module_pass_manager()
    _add_passes(passes)
    passes.run(module, builder)
    return machine, module


def _add_passes(passes: binding.ModulePassManager) -> None:
    """Registers for local tiles, then cleaning up; loops are already as they should be.

    The standard pipelines would vectorise and unroll again, at several times the build time
    (measured: docs of the benchmark suite).
    """
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()


@cache
def _machine(target: Target) -> binding.TargetMachine:
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    features = target.features
    if target.vector_bits >= 512 and "x86" in target.triple:
        # LLVM otherwise splits 512-bit vectors on some CPUs.
        features = f"{features},-prefer-256-bit" if features else "-prefer-256-bit"
    try:
        found = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CodegenError(f"LLVM has no target {target.triple}: {error}") from error
    return found.create_target_machine(
        cpu=target.cpu,
        features=features,
        opt=1,
        reloc="pic",
        codemodel="small",
        abiname=_abi(target),
    )


def _abi(target: Target) -> str:
    """The calling convention where LLVM does not take it from the triple: linkers compare it."""
    return "lp64d" if target.triple.startswith("riscv64") else ""
