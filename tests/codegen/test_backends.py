"""Each backend has a code generator; whoever adds a row adds a backend."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansorpy.codegen.backends import codegen_of
from ansorpy.ir.expr import Function
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.codegen.cuda.compiling import needs_nvrtc

CPU, GPU = Target.parse("x86-64-v3"), Target.parse("sm_90")


def doubled() -> State:
    a = placeholder((7,), name="A")
    return State.initial([a, compute((7,), lambda i: a[i] * 2.0, name="B")])


@pytest.mark.parametrize(
    ("form", "line"), [("llvm", r"define i32 @doubled\("), ("asm", r"^doubled:")]
)
def test_forms_of_code_for_a_cpu(form: str, line: str) -> None:
    found = codegen_of(CPU).forms[form].of(lower(doubled()).run, CPU, "doubled", False)
    assert re.search(line, found, re.MULTILINE)


@pytest.mark.parametrize(("name", "extended"), [("c", False), ("c:vector=128", True)])
def test_forms_of_code_in_c(name: str, extended: bool) -> None:
    target = Target.parse(name)
    found = codegen_of(target).forms["c"].of(lower(doubled()).run, target, "doubled", False)
    assert "int32_t doubled(void *const *args" in found
    assert ("vectors need an extension of GCC and Clang" in found) == extended


@needs_nvrtc
@pytest.mark.parametrize(
    ("form", "line"), [("cuda", r"__global__ .*doubled\("), ("ptx", r"\.entry doubled\(")]
)
def test_forms_of_code_for_a_gpu(form: str, line: str) -> None:
    found = codegen_of(GPU).forms[form].of(lower(doubled()).run, GPU, "doubled", False)
    assert re.search(line, found, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("name", "dots"),
    [
        ("x86-64-v3", set()),
        ("x86-64-v4", set()),
        ("cortex-a76", {Function.DOT_S8S8}),
        ("sm_90", set()),
    ],
)
def test_dot_instructions(name: str, dots: set[Function]) -> None:
    target = Target.parse(name)
    assert codegen_of(target).dots(target) == dots


def test_dot_instructions_of_features() -> None:
    vnni = replace(Target.parse("x86-64-v4"), features="+avx512vl,+avx512vnni")
    assert codegen_of(vnni).dots(vnni) == {Function.DOT_U8S8}
