"""Targets by name, by triple and of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy import target as module
from ansorpy.errors import UsageError
from ansorpy.target import Target


def test_host_facts_are_consistent() -> None:
    host = Target.parse("host")
    assert host is Target.host()
    assert host.kind == "cpu" and host.cores >= 1
    assert host.vector_bits in (128, 256, 512)
    assert host.lanes(32) * 32 == host.vector_bits
    assert host.lanes(64) * 2 == host.lanes(32)
    assert 0 < host.l1_bytes <= host.l2_bytes
    assert host.runs_on_host()


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"avx512f", "avx512vl", "avx2", "avx"}, (512, 32)),
        ({"avx", "avx2", "fma"}, (256, 16)),
        ({"sse2"}, (128, 16)),
    ],
)
def test_vectors_of_x86_features(features: set[str], expected: tuple[int, int]) -> None:
    assert module._vectors("x86_64", features) == expected


def test_named_targets() -> None:
    assert Target.parse("x86-64-v3").lanes(32) == 8
    assert Target.parse("x86-64-v4").lanes(32) == 16
    arm = Target.parse("cortex-a76")
    assert arm.lanes(32) == 4 and arm.vector_registers == 32 and arm.triple.startswith("aarch64")
    assert Target.parse("x86-64-v4").feature_set > Target.parse("x86-64-v3").feature_set


def test_risc_v_has_floating_point_and_vectors_when_asked() -> None:
    plain, vectors = Target.parse("riscv64-linux-gnu"), Target.parse("rv64gcv")
    assert {"m", "f", "d", "c"} <= plain.feature_set
    assert vectors.feature_set - plain.feature_set == {"v"}
    assert Target.parse("wasm32-unknown-unknown").feature_set == {"simd128"}


def test_another_architecture_does_not_run_here() -> None:
    host_arch = Target.host().triple.split("-")[0]
    other = "cortex-a76" if host_arch == "x86_64" else "x86-64-v2"
    assert not Target.parse(other).runs_on_host()
    assert not Target.parse("cuda").runs_on_host()


def test_cuda_targets_carry_block_limits() -> None:
    gpu = Target.parse("sm_90")
    assert gpu.kind == "cuda" and gpu.cpu == "sm_90" and gpu.name == "sm_90"
    assert gpu.warp_size == 32 and gpu.max_threads_per_block == 1024
    assert gpu.max_shared_bytes >= 48 * 1024 and gpu.max_vthread == 8


def test_a_triple_gives_a_baseline_target() -> None:
    target = Target.parse("aarch64-unknown-linux-gnu")
    assert target.triple == target.name and target.lanes(32) == 4


@pytest.mark.parametrize("text", ["pentium", "sm_9", "quux-unknown-linux-gnu", "", "x86-64-v9"])
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="unknown target"):
        Target.parse(text)


def test_lanes_never_reach_zero() -> None:
    assert Target.parse("x86-64-v2").lanes(256) == 1


def test_caches_are_read_from_sys(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(level + "\n")
        (folder / "type").write_text(kind + "\n")
        (folder / "size").write_text(size + "\n")
    assert module._host_caches(tmp_path) == {1: 48 << 10, 2: 2 << 20}


def test_keys_tell_machines_apart() -> None:
    keys = {Target.parse(n).key for n in ("x86-64-v3", "x86-64-v4", "cortex-a76", "cuda", "sm_90")}
    assert len(keys) == 5
