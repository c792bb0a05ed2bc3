"""The entry of a library with several versions of a program: ``init`` chooses one for this CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ansorpy.codegen.llvm.emit.text import ATTRIBUTES, FunctionText
from ansorpy.runtime.entry.text import PARAMETERS, metadata_global
from ansorpy.runtime.status import Status

__all__ = ["emit_dispatch"]


def emit_dispatch(name: str, versions: Sequence[str], triple: str, metadata: str) -> str:
    """Emit ``<name>_init``, which takes the first of *versions* that this CPU has the instructions
    for, and the functions that call it.

    Args:
        versions: Prefixes of their functions.
    """
    declared = [f"declare i32 @{version}_init()" for version in versions]
    declared += [
        re.sub(r" %\w+", "", f"declare i32 @{version}_{function}({parameters})")
        for version in versions
        for function, parameters in PARAMETERS.items()
    ]
    parts = [
        f'target triple = "{triple}"\n',
        *declared,
        "@chosen = internal global i32 -1, align 4",
        metadata_global(name, metadata),
        _emit_init(name, versions),
        *(_emit_call(name, function, versions) for function in PARAMETERS),
        f"{ATTRIBUTES}\n",
    ]
    return "\n".join(parts)


def _emit_init(name: str, versions: Sequence[str]) -> str:
    """Later calls, from any thread, come to the same result: versions remember theirs."""
    text = FunctionText(f"i32 @{name}_init()")
    for number, version in enumerate(versions):
        code = text.define(f"call i32 @{version}_init()")
        other, found = text.fresh_label("other"), text.fresh_label("found")
        is_other = text.define(f"icmp eq i32 {code}, {Status.WRONG_CPU.value}")
        text.branch_if(is_other, other, found)
        text.start_block(found)
        text.emit(f"store atomic i32 {number}, ptr @chosen release, align 4")
        text.emit(f"ret i32 {code}")
        text.start_block(other)
    text.emit(f"ret i32 {Status.WRONG_CPU.value}")
    return text.render()


def _emit_call(name: str, function: str, versions: Sequence[str]) -> str:
    parameters = PARAMETERS[function]
    text = FunctionText(f"i32 @{name}_{function}({parameters})")
    chosen = text.define("load atomic i32, ptr @chosen acquire, align 4")
    for number, version in enumerate(versions):
        this, other = text.fresh_label("this"), text.fresh_label("other")
        text.branch_if(text.define(f"icmp eq i32 {chosen}, {number}"), this, other)
        text.start_block(this)
        text.emit(f"ret i32 {text.define(f'call i32 @{version}_{function}({parameters})')}")
        text.start_block(other)
    text.emit(f"ret i32 {Status.NOT_INITIALISED.value}")
    return text.render()
