"""The LLVM module under construction: intrinsic declarations, functions, shared constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansorpy.codegen.llvm.emit.text import ATTRIBUTES, FunctionText
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import Buffer
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.affine import Affine
    from ansorpy.codegen.llvm.emit.emitter import Emitter
    from ansorpy.codegen.llvm.emit.text import Value
    from ansorpy.codegen.storage import StoragePlan

__all__ = ["MAX_VECTOR_BYTES", "ZERO_BYTES", "Module", "Tables", "mangled"]

_ZEROS = "@zeros"
ZERO_BYTES = 1 << 14
"""Bytes of the block of zeros that guarded loads read instead of memory they must not touch."""
MAX_VECTOR_BYTES = 64


@dataclass(frozen=True)
class Tables:
    """The functions that emit each kind of node."""

    expressions: Mapping[type, Callable[[Emitter, Any], Value]]
    indices: Mapping[type, Callable[[Emitter, Any], Affine]]
    statements: Mapping[type, Callable[[Emitter, Any], None]]


@dataclass
class Module:
    """Functions and declarations of one kernel's module; all its symbols start with *symbol*.

    Args:
        lanes: Number of lanes of each vectorized loop, by its variable.
        overlapping: Parameters whose arrays may overlap in a call.
    """

    symbol: str
    target: Target
    storage: StoragePlan
    tables: Tables
    lanes: Mapping[Var, int]
    overlapping: frozenset[Buffer]
    functions: list[FunctionText] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    uses_zeros: bool = False
    regions: int = 0

    def declare(self, name: str, result: str, parameters: str) -> str:
        """Declare an external function or intrinsic once; return its name."""
        self.declarations[name] = f"declare {result} @{name}({parameters})"
        return name

    def intrinsic(self, name: str, type_: str, count: int) -> str:
        """Declare ``llvm.<name>`` on *count* operands of one scalar or vector type."""
        full = f"llvm.{name}.{mangled(type_)}"
        return self.declare(full, type_, ", ".join([type_] * count))

    def zeros(self) -> str:
        self.uses_zeros = True
        return _ZEROS

    def region_name(self) -> str:
        self.regions += 1
        return f"{self.symbol}.region{self.regions}"

    def render(self) -> str:
        parts = [f'target triple = "{self.target.triple}"\n']
        if self.uses_zeros:
            parts.append(
                f"{_ZEROS} = internal global [{ZERO_BYTES} x i8] zeroinitializer, align 64\n"
            )
        parts += [function.render() for function in self.functions]
        parts.append("\n".join(self.declarations.values()))
        parts.append(f"\n{ATTRIBUTES}\n")
        return "\n".join(parts)


_SHORT = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}


def mangled(type_: str) -> str:
    """The suffix of an overloaded intrinsic's name for *type_*."""
    if type_.startswith("<"):
        lanes, element = type_[1:-1].split(" x ")
        return f"v{lanes}{_SHORT.get(element, element)}"
    return _SHORT.get(type_, type_)
