from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import replace

import pytest

from ansorpy.codegen.llvm.objects.build import assembly, compile_ir
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.runtime.cpu_features import missing_features, required_features
from ansorpy.runtime.entry.cpu_check import CHECK, emit_cpu_check
from ansorpy.target import Target
from ansorpy.targets import llvm

HOST = Target.host()
pytestmark = pytest.mark.skipif("x86_64" not in HOST.triple, reason="asks an x86 CPU")


def asking(*features: str) -> str:
    return (
        f'target triple = "{HOST.triple}"\n{emit_cpu_check(features)}\n'
        f"define i32 @ask() {{ %a = call i1 {CHECK}() %b = zext i1 %a to i32 ret i32 %b }}\n"
        "attributes #0 = { nounwind }\n"
    )


def has(*features: str) -> bool:
    code = compile_ir(asking(*features), Target.parse("x86_64-unknown-linux-gnu"))
    with load([code], symbols=["ask"]) as it:
        return bool(ctypes.CFUNCTYPE(ctypes.c_int)(it.address("ask"))())


@pytest.mark.parametrize(
    "feature", ["sse4.2", "avx", "avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "avxvnni",
                "lzcnt", "xop", "fma4", "amx-tile", "avx512er", "avx512fp16", "movbe", "bmi2",
                "egpr", "avxifma", "avxneconvert"],
)  # fmt: skip
def test_each_feature_agrees_with_llvm(feature: str) -> None:
    assert has(feature) == (feature in HOST.feature_set)


def test_all_of_the_hosts_at_once() -> None:
    required = required_features(HOST)
    assert len(required) > 3
    assert has(*required)
    assert not has(*required, "avx512er", "xop")
    assert has()


def test_what_a_target_requires() -> None:
    assert required_features(Target.parse("cortex-a76")) == ()
    v3 = required_features(Target.parse("x86-64-v3"))
    assert {"avx2", "fma", "bmi2"} <= set(v3)
    assert not any(name.startswith("avx512") for name in v3)
    alien = replace(HOST, features="+xop,+avx512er,+sse3")
    assert missing_features(required_features(alien)) != []


def test_code_for_this_machine_needs_what_it_can_check() -> None:
    """AVX10.2 has an instruction for this maximum, and CPUID a number instead of a bit."""
    maximum = (
        f'target triple = "{HOST.triple}"\n'
        "declare <16 x float> @llvm.maximum.v16f32(<16 x float>, <16 x float>)\n"
        "define <16 x float> @f(<16 x float> %a, <16 x float> %b) #0 {\n"
        "  %c = call <16 x float> @llvm.maximum.v16f32(<16 x float> %a, <16 x float> %b)\n"
        "  ret <16 x float> %c\n}\nattributes #0 = { nounwind }\n"
    )
    names = ["avx512f", "avx512vl", "egpr", "avx10.2", "sse3"]
    made = replace(HOST, cpu="diamondrapids", features=llvm.signed(names))
    assert required_features(made) == ("sse3", "avx512f", "avx512vl", "egpr")
    assert "vminmaxps" in assembly(maximum, replace(made, features=""))
    assert "vminmaxps" not in assembly(maximum, made)


def test_it_is_assembly_in_a_process_that_made_no_library() -> None:
    code = (
        "import sys; from ansorpy.codegen.llvm.objects.build import assembly; "
        "from ansorpy.target import Target; print(assembly(sys.stdin.read(), Target.host()))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=asking("avx2"), capture_output=True, text=True, check=True)
    assert "cpuid" in done.stdout
