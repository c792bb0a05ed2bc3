"""Dot products of words with 8- or 16-bit parts, by one instruction if the target has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.accesses import Access, access, load, load_stored
from ansorpy.codegen.llvm.emit.affine import Affine
from ansorpy.codegen.llvm.emit.arithmetic import fma, number, op
from ansorpy.codegen.llvm.emit.conversions import bitcast, converted, to_stored
from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, Load
from ansorpy.ir.loops import Buffer
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["dot", "has_instruction", "word"]


@dataclass(frozen=True)
class _Instruction:
    """An LLVM intrinsic for registers of *bits*; a target has it with any of the feature sets."""

    name: str
    bits: int
    features: tuple[frozenset[str], ...]
    part: str

    def present(self, target: Target) -> bool:
        return any(needed <= target.feature_set for needed in self.features)


def _x86(
    name: str, part: str, wide: Sequence[str], narrow: Sequence[Sequence[str]]
) -> list[_Instruction]:
    narrower = tuple(frozenset(features) for features in narrow)
    return [
        _Instruction(f"llvm.x86.{name}.512", 512, (frozenset(wide),), part),
        _Instruction(f"llvm.x86.{name}.256", 256, narrower, part),
        _Instruction(f"llvm.x86.{name}.128", 128, narrower, part),
    ]


_INSTRUCTIONS: Mapping[Function, list[_Instruction]] = {
    Function.DOT_U8S8: _x86(
        "avx512.vpdpbusd", "i8", ["avx512vnni"], [["avx512vnni", "avx512vl"], ["avxvnni"]]
    ),
    Function.DOT_BF16: _x86(
        "avx512bf16.dpbf16ps", "bfloat", ["avx512bf16"], [["avx512bf16", "avx512vl"]]
    ),
    Function.DOT_S8S8: [
        _Instruction("llvm.aarch64.neon.sdot.v4i32.v16i8", 128, (frozenset(["dotprod"]),), "i8")
    ],
}


def has_instruction(fn: Function, target: Target) -> bool:
    """True if *target* multiplies and adds whole vectors of such words in one instruction."""
    return any(i.present(target) and i.bits == target.vector_bits for i in _INSTRUCTIONS[fn])


def dot(e: Emitter, fn: Function, a: Value, b: Value, total: Value | None = None) -> Value:
    """``total + dot(a, b)``; without *total* the dot product alone."""
    kind = DOTS[fn].result
    if total is None:
        zero = "0x0000000000000000" if kind.is_float else "0"
        total = Value("float" if kind.is_float else "i32", zero, 0, 0)
    a, b, total = e.unified(a, b, total)
    found = [i for i in _INSTRUCTIONS[fn] if i.present(e.module.target)]
    for instruction in found:
        if total.lanes * 32 == instruction.bits:
            return _instruction(e, instruction, a, b, total)
    return _by_parts(e, fn, a, b, total)


def _instruction(e: Emitter, i: _Instruction, a: Value, b: Value, total: Value) -> Value:
    lanes = i.bits // (16 if i.part == "bfloat" else 8)
    parts = f"<{lanes} x {i.part}>"
    e.module.declare(i.name, total.type, f"{total.type}, {parts}, {parts}")
    x, y = (Value(i.part, e.text.define(f"bitcast {v.typed} to {parts}"), lanes) for v in (a, b))
    return e.text.value(total.element, total.lanes, e.text.call(total.type, i.name, (total, x, y)))


def _by_parts(e: Emitter, fn: Function, a: Value, b: Value, total: Value) -> Value:
    """Emit one multiplication and one addition per part."""
    spec = DOTS[fn]
    for n in range(spec.terms):
        x, y = _part(e, a, n, spec.left), _part(e, b, n, spec.right)
        total = fma(e, x, y, total) if total.is_float else op(e, "add", op(e, "mul", x, y), total)
    return total


def _part(e: Emitter, word: Value, n: int, kind: DType) -> Value:
    """Part *n* of each word as an i32, or a bfloat16 as a float."""
    up = op(e, "shl", word, number(32 - kind.bits * (n + 1), word))
    if kind is DType.BFLOAT16:
        return bitcast(e, op(e, "and", up, number(-(1 << 16), up)), "float")
    return op(e, "ashr" if kind.is_signed else "lshr", up, number(32 - kind.bits, up))


def word(e: Emitter, expr: Call) -> Value:
    """Join the parts into words; parts adjacent in memory become one load of words."""
    uses = [_use(e, arg) for arg in expr.args]
    whole = _as_words([use for use in uses if use is not None], len(expr.args))
    if whole is not None:
        return load(e, whole)
    bits = 32 // len(expr.args)
    total: Value | None = None
    for n, (arg, use) in enumerate(zip(expr.args, uses, strict=True)):
        part = load_stored(e, use) if use else to_stored(e, e.value(arg), arg.dtype)
        raised = converted(e, "zext", part, "i32")
        raised = op(e, "shl", raised, number(bits * n, raised)) if n else raised
        total = raised if total is None else op(e, "or", total, raised)
    assert total is not None
    return total


def _use(e: Emitter, arg: Expr) -> Access | None:
    if not isinstance(arg, Load) or not isinstance(arg.source, Buffer):
        return None
    return access(e, arg.source, [e.index(index) for index in arg.indices])


def _as_words(uses: Sequence[Access], terms: int) -> Access | None:
    """The accesses as one access of words, if their parts make up whole words in memory."""
    if len(uses) != terms or any(use.buffer is not uses[0].buffer for use in uses):
        return None
    first = uses[0]
    for n, use in enumerate(uses):
        ahead = use.offset - first.offset
        if not use.in_bounds or not ahead.is_constant or ahead.const != n:
            return None
    offset = _in_words(first.offset, terms)
    if offset is None:
        return None
    place = replace(first.place, size=first.place.size // terms)
    return replace(first, place=place, offset=offset, dtype=DType.UINT32)


def _in_words(offset: Affine, terms: int) -> Affine | None:
    lanes = offset.lanes or ()
    if any(n % terms for n in (offset.const, *offset.terms.values(), *lanes)):
        return None
    fewer = {symbol: coefficient // terms for symbol, coefficient in offset.terms.items()}
    return Affine(fewer, offset.const // terms, tuple(n // terms for n in lanes) if lanes else None)
