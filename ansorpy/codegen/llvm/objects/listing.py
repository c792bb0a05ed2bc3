"""One module of several, each with the CPU that it is compiled for, to be read or assembled."""

from __future__ import annotations

from collections.abc import Iterable

from ansorpy.codegen.llvm.emit.text import ATTRIBUTES
from ansorpy.codegen.llvm.objects.build import features_of, machine_of, optimised
from ansorpy.target import Target

__all__ = ["assembly_of", "ir_of"]


def ir_of(modules: Iterable[tuple[str, Target]]) -> str:
    """The LLVM IR of *modules*, optimised, as one; the same symbol is the same function."""
    first, *rest = [optimised(_stating(text, target), target)[1] for text, target in modules]
    for module in rest:
        first.link_in(module)
    return str(first)


def assembly_of(ir: str, target: Target) -> str:
    """The machine code of the module *ir* as assembly; functions state their own CPUs."""
    from llvmlite import binding

    listing: str = machine_of(target).emit_assembly(binding.parse_assembly(ir))
    return listing


def _stating(text: str, target: Target) -> str:
    """The module *text* whose functions say what they are compiled for."""
    stated = f'"target-cpu"="{target.cpu}" "target-features"="{features_of(target)}"'
    return text.replace(ATTRIBUTES, ATTRIBUTES.replace("nounwind", f"nounwind {stated}"))
