from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest
from llvmlite import binding

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.runtime.cpu_features import missing_features, required_features
from ansorpy.runtime.entry.cpu_check import CHECK, emit_cpu_check
from ansorpy.target import Target

HOST = Target.host()
pytestmark = pytest.mark.skipif("x86_64" not in HOST.triple, reason="asks an x86 CPU")


def has(*features: str) -> bool:
    binding.initialize_native_target()
    binding.initialize_native_asmparser()
    text = (
        f'target triple = "{HOST.triple}"\n{emit_cpu_check(features)}\n'
        f"define i32 @ask() {{ %a = call i1 {CHECK}() %b = zext i1 %a to i32 ret i32 %b }}\n"
        "attributes #0 = { nounwind }\n"
    )
    with load([compile_ir(text, Target.parse("x86_64-unknown-linux-gnu"))], symbols=["ask"]) as it:
        return bool(ctypes.CFUNCTYPE(ctypes.c_int)(it.address("ask"))())


@pytest.mark.parametrize(
    "feature", ["sse4.2", "avx", "avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "avxvnni",
                "lzcnt", "xop", "fma4", "amx-tile", "avx512er", "avx512fp16", "movbe", "bmi2"],
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
