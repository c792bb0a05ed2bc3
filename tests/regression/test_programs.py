"""Definitions, sketches and programs of the operators, as text, for targets that stay the same.

``pytest tests/regression --update-golden`` accepts what changed and prints it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from ansorpy.codegen.c.emit import emit_c, translation_unit
from ansorpy.codegen.c.generator import style_of
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import Program
from ansorpy.ir.text.printer import text
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.regression.drawing import Drawn, draw, sampler_of
from tests.regression.operators import OPERATORS

IN_FULL = {
    "x86-64-v3": ("matmul", "dense", "softmax", "int8_matmul"),
    "sm_90": ("matmul", "conv2d_channels_first", "softmax", "float16_matmul"),
    "sm_90a": ("large_float16_matmul",),
    "c:cores=2": ("matmul", "softmax", "gather"),
    "c:vector=128": ("matmul",),
}
"""Operators whose code is kept in full, by target; of others, a digest is."""

ASKED = [
    (operator, target)
    for operator in OPERATORS
    for target in ("x86-64-v3", "sm_90")
    if operator not in IN_FULL["sm_90a"]
] + [(operator, "sm_90a") for operator in IN_FULL["sm_90a"]]

C_ASKED = [
    *((o, "c:cores=2") for o in (*IN_FULL["c:cores=2"], "int8_matmul", "depthwise", "layer_norm")),
    *((o, "c:vector=128") for o in (*IN_FULL["c:vector=128"], "conv2d_strided", "softmax")),
]
"""Of C only programs are kept: its sketches are those of other CPUs."""

MOST_SKETCHES = 4
"""Sketches of a definition that are kept in full."""


def digest(code: str) -> str:
    return f"{code.count(chr(10))} lines, sha256 {hashlib.sha256(code.encode()).hexdigest()[:24]}"


def sketch_text(number: int, sketch: State) -> str:
    steps = str(sketch.history)
    if number >= MOST_SKETCHES:
        return f"sketch {number}: {len(sketch.history)} steps, {digest(steps)}"
    return "\n\n".join(part for part in (f"sketch {number}:", steps, sketch.text() + "\n") if part)


@pytest.mark.parametrize("preset", ["ansor", "default"])
@pytest.mark.parametrize(("operator", "target"), ASKED)
def test_sketches(operator: str, target: str, preset: str, golden: Callable[[str], None]) -> None:
    sampler = sampler_of(operator, Target.parse(target), preset)
    parts = []
    for definition in sampler.definitions:
        parts.append(f"definition {definition.name}:\n{text(definition.dag)}\n")
        own = [n for n, pair in enumerate(sampler.pairs) if pair.definition == definition.name]
        parts += [sketch_text(k, sampler.sketches[n]) for k, n in enumerate(own)]
    golden("\n".join(parts))


def emitted(program: Program, target: Target, symbol: str) -> str:
    """The text that a compiler is given."""
    try:
        if target.backend == "cuda":
            return emit_cuda(program, target, symbol).text
        if target.backend == "c":
            return translation_unit([emit_c(program, target, symbol, style_of(target))])
        return emit_llvm(program, target, symbol)
    except CodegenError as error:
        return f"no code: {error}\n"


def candidate_text(drawn: Drawn, target: Target, in_full: bool) -> str:
    """What is decided, the programs it leads to, and their code."""
    pair = drawn.sketch.pair
    parts = [f"candidate of {pair.definition}, sketch {pair.sketch}\n{drawn.decided}\n"]
    programs = {"bind": drawn.lowered.bind, "run": drawn.lowered.run}
    for symbol, program in programs.items():
        if program is not None:
            code = emitted(program, target, symbol)
            parts += [text(program), code if in_full else f"code: {digest(code)}\n"]
    return "\n".join(parts)


@pytest.mark.parametrize(("operator", "target"), ASKED + C_ASKED)
def test_programs(operator: str, target: str, golden: Callable[[str], None]) -> None:
    machine, in_full = Target.parse(target), operator in IN_FULL[target]
    parts = [
        f"preset {preset}, {candidate_text(drawn, machine, in_full)}"
        for preset, count in (("ansor", 1), ("default", 1 if in_full else 2))
        for drawn in draw(operator, machine, preset, count)
    ]
    assert parts
    golden("\n".join(parts))
