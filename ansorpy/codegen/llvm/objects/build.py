"""Build object code from a loop program: emit IR, run the few useful passes, generate code."""

from __future__ import annotations

import hashlib
import time
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.program import emit_module
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import Program
from ansorpy.target import Target

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["assembly", "build", "compile_ir", "features_of", "machine_of", "optimised"]


def build(program: Program, target: Target, *, symbol: str, prefetch: bool = False) -> ObjectCode:
    """Compile *program* for *target*, which need not be this machine.

    With *prefetch*, the code assumes that constants lie outside a core's own caches, and prefetches
    them.

    Raises:
        CodegenError: The program uses a feature that no CPU has, or LLVM rejects the module.
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
    """Compile LLVM IR *text* to an object file, including optimisation passes.

    Recent results are cached, so finalists, the default schedule, and packing code that several
    candidates share are not compiled twice.
    """
    machine, module = optimised(text, target)
    code: bytes = machine.emit_object(module)
    return code


def assembly(text: str, target: Target) -> str:
    """The machine code of LLVM IR *text* as readable assembly."""
    machine, module = optimised(text, target)
    listing: str = machine.emit_assembly(module)
    return listing


def optimised(text: str, target: Target) -> tuple[binding.TargetMachine, binding.ModuleRef]:
    """The module of LLVM IR *text* after all passes, and the machine that it is for.

    Raises:
        CodegenError: LLVM rejects the module.
    """
    from llvmlite import binding

    machine = machine_of(target)
    try:
        module = binding.parse_assembly(text)
    except RuntimeError as error:
        raise CodegenError(f"LLVM rejects the generated module: {error}") from error
    module.data_layout = str(machine.target_data)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(1))
    passes = binding.create_new_module_pass_manager()
    _add_passes(passes)
    passes.run(module, builder)
    return machine, module


def _add_passes(passes: binding.ModulePassManager) -> None:
    """Add passes that promote local tiles to registers and clean up; loops are in final form.

    The standard pipelines would vectorise and unroll again and take several times as long to build.
    """
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()


@cache
def machine_of(target: Target) -> binding.TargetMachine:
    """LLVM's machine for *target*."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()  # of inline assembly, also where it is only printed
    try:
        found = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CodegenError(f"LLVM has no target {target.triple}: {error}") from error
    return found.create_target_machine(
        cpu=target.cpu,
        features=features_of(target),
        opt=1,
        reloc="pic",
        codemodel="small",
        abiname=_abi(target),
    )


def features_of(target: Target) -> str:
    """The features of *target*'s machine, in LLVM's notation."""
    if target.vector_bits >= 512 and "x86" in target.triple:
        # LLVM otherwise splits 512-bit vectors on some CPUs.
        return f"{target.features},-prefer-256-bit" if target.features else "-prefer-256-bit"
    return target.features


def _abi(target: Target) -> str:
    """The ABI name if LLVM does not derive it from the triple; linkers check that objects agree."""
    return "lp64d" if target.triple.startswith("riscv64") else ""
