"""Targets of C: their parameters, and what is wrong with others."""

from __future__ import annotations

import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.target import Target
from ansorpy.targets.c import SCALAR_BITS, c_target


def test_scalar_code_for_one_core_by_default() -> None:
    c = Target.parse("c")
    assert (c.backend, c.triple, c.cores, c.word_bits) == ("c", "", 1, 64)
    assert c.vector_bits == SCALAR_BITS and c.lanes(32) == c.lanes(64) == 1
    assert c.family == "scalar C"


def test_parameters_describe_the_machine() -> None:
    c = Target.parse(
        "c:word=32,vector=128,registers=32,cores=4,l1=48KiB,l2=1MiB,l3=4194304,line=32"
    )
    assert (c.word_bits, c.vector_bits, c.vector_registers, c.cores) == (32, 128, 32, 4)
    assert (c.l1_bytes, c.l2_bytes, c.l3_bytes) == (48 << 10, 1 << 20, 4 << 20)
    assert c.cache_line_bytes == 32 and c.family == "C with 128-bit vectors"


def test_equal_machines_have_one_key_and_others_another() -> None:
    assert Target.parse("c:l1=32KiB,cores=1").key == Target.parse("c").key
    assert Target.parse("c:l1=16KiB").key != Target.parse("c").key


def test_a_machine_without_a_second_cache_has_the_first_alone() -> None:
    c = Target.parse("c:l1=16KiB,l2=0")
    assert c.l1_bytes == c.l2_bytes == 16 << 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c:", "target 'c:' has no parameters"),
        ("c:simd=128", "'simd=128' is no parameter of target 'c:simd=128'\nhint: .* word, vector"),
        ("c:vector", "'vector' is no parameter"),
        ("c:word=16", "word=16 of target 'c:word=16' is none of 32, 64"),
        ("c:vector=100", "vector=100 .* is none of 0, 64, 128"),
        ("c:cores=two", "cores=two of target 'c:cores=two' is not a whole number"),
        ("c:l1=32kb", "l1=32kb of target 'c:l1=32kb' is not bytes, as in 32KiB"),
        ("c:cores=1,cores=2", "has cores twice"),
        ("c:registers=0", "registers of target 'c:registers=0' must be at least 1"),
    ],
)
def test_wrong_parameters_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Target.parse(text)


def test_threads_are_cores() -> None:
    c = Target.parse("c:cores=4")
    assert c.threads(None) == 4 and c.threads(2) == 2
    with pytest.raises(UsageError, match=r"has 4 core\(s\), too few for 8 threads"):
        c.threads(8)


def test_c_for_a_machine_of_another_backend() -> None:
    v4 = Target.parse("x86-64-v4")
    c = c_target(v4)
    assert c.backend == "c" and c == Target.parse(c.name)
    assert (c.vector_bits, c.cores, c.l2_bytes) == (v4.vector_bits, v4.cores, v4.l2_bytes)


def test_programs_do_not_run_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    assert not Target.parse("c").runs_on_host()
    with pytest.raises(MissingDependency, match="no C compiler"):
        Target.parse("c").require_device()
