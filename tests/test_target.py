"""Targets by name, by triple and of this machine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.target import Target
from ansorpy.targets import cuda, llvm


def test_host_facts_are_consistent() -> None:
    host = Target.parse("host")
    assert host is Target.host()
    assert host.backend == "llvm" and host.cores >= 1
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
    assert llvm.vectors_of("x86_64", features) == expected


def test_a_target_prints_in_a_line() -> None:
    target = replace(Target.parse("x86-64-v3"), cores=1)
    assert repr(target).startswith("<Target x86-64-v3, x86-64-v3 of x86_64-")
    assert repr(target).endswith(", 1 core, 256-bit vectors>")
    assert repr(Target.parse("sm_90")) == "<Target sm_90, 132 cores, 128-bit vectors>"


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
    assert not Target.parse("sm_80").runs_on_host()


def test_cuda_targets_carry_the_limits_of_blocks_and_sms() -> None:
    gpu = Target.parse("sm_90")
    assert gpu.backend == "cuda" and gpu.cpu == "sm_90" and gpu.name == "sm_90"
    assert gpu.warp_size == 32 and gpu.max_threads_per_block == 1024
    assert gpu.max_shared_bytes == 48 * 1024 and gpu.max_vthread == 8
    assert gpu.max_shared_optin_bytes == 227 * 1024 and gpu.shared_per_sm_bytes == 228 * 1024
    assert gpu.vector_registers == 255 and gpu.registers_per_block == 1 << 16
    assert (gpu.cores, gpu.max_threads_per_sm, gpu.max_blocks_per_sm) == (132, 2048, 32)


@pytest.mark.parametrize("name", ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120"])
def test_limits_of_architectures_fit_together(name: str) -> None:
    gpu = Target.parse(name)
    assert gpu.cpu == name and gpu.backend == "cuda"
    assert gpu.max_shared_bytes < gpu.max_shared_optin_bytes <= gpu.shared_per_sm_bytes
    assert gpu.shared_per_sm_bytes <= gpu.l1_bytes < gpu.l2_bytes
    assert gpu.max_threads_per_block <= gpu.max_threads_per_sm


def test_an_architecture_not_known_has_the_limits_of_the_newest_before_it() -> None:
    known, newer = Target.parse("sm_100"), Target.parse("sm_101")
    assert newer.max_shared_optin_bytes == known.max_shared_optin_bytes
    assert newer.key != known.key


def test_the_device_is_what_cuda_says_it_is() -> None:
    found = {
        "name": b"NVIDIA H200", "major": 9, "minor": 0, "multiProcessorCount": 131, "warpSize": 32,
        "l2CacheSize": 60 << 20, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 48 << 10,
        "sharedMemPerBlockOptin": 227 << 10, "regsPerBlock": 1 << 16,
        "sharedMemPerMultiprocessor": 228 << 10, "maxThreadsPerMultiProcessor": 2048,
        "maxBlocksPerMultiProcessor": 32,
    }  # fmt: skip
    device = cuda.device_target(found)
    assert device.cpu == "sm_90a" and device.name == "cuda" and device.capability == 90
    assert (device.cores, device.l2_bytes) == (131, 60 << 20)
    assert device.key != Target.parse("sm_90").key and "H200" in device.key


def test_gpus_of_this_machine_are_chosen_by_what_they_run(monkeypatch) -> None:
    big = replace(Target.parse("sm_90a"), name="cuda", features="H200")
    small = replace(Target.parse("sm_86"), name="cuda", features="A10")
    monkeypatch.setattr(cuda, "cuda_devices", lambda: (big, small, big))
    assert Target.parse("cuda") == big
    numbers = {name: Target.parse(name).gpus() for name in ("cuda", "sm_90", "sm_86", "sm_89")}
    assert numbers == {"cuda": (0, 2), "sm_90": (0, 2), "sm_86": (1,), "sm_89": ()}
    assert Target.parse("sm_80").gpus() == ()  # it may take more shared memory than sm_86 has
    assert Target.parse("sm_90a").gpus() == (0, 2)
    assert Target.parse("sm_90").runs_on_host() and not Target.parse("sm_89").runs_on_host()
    monkeypatch.setenv("ANSORPY_DEVICE", "2")
    assert Target.parse("cuda") == big and big.gpus() == (2,)
    monkeypatch.setenv("ANSORPY_DEVICE", "3")
    with pytest.raises(MissingDependency, match="there is no GPU 3: CUDA counts 3 here"):
        Target.parse("cuda")
    other = replace(big, features="H100")
    monkeypatch.setattr(cuda, "cuda_devices", lambda: (big, other))
    monkeypatch.setenv("ANSORPY_DEVICE", "1")
    assert Target.parse("sm_90a").gpus() == (1,)  # it runs the code, though another comes first


def test_a_gpu_too_old_for_programs_hides_no_other(monkeypatch) -> None:
    pascal = {
        "name": b"GTX 1080", "major": 6, "minor": 1, "multiProcessorCount": 20, "warpSize": 32,
        "l2CacheSize": 2 << 20, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 48 << 10,
        "sharedMemPerBlockOptin": 48 << 10, "regsPerBlock": 1 << 16,
        "sharedMemPerMultiprocessor": 96 << 10, "maxThreadsPerMultiProcessor": 2048,
        "maxBlocksPerMultiProcessor": 32,
    }  # fmt: skip
    old = cuda.device_target(pascal)
    small = replace(Target.parse("sm_86"), name="cuda", features="A10")
    monkeypatch.setattr(cuda, "cuda_devices", lambda: (old, small))
    with pytest.raises(MissingDependency, match=r"GTX 1080\) is older than sm_70"):
        Target.parse("cuda")
    numbers = {name: Target.parse(name).gpus() for name in ("sm_86", "sm_70")}
    assert numbers == {"sm_86": (1,), "sm_70": ()}
    monkeypatch.setenv("ANSORPY_DEVICE", "1")
    assert Target.parse("cuda") == small


def test_a_machine_without_a_device_says_so() -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(MissingDependency, match="cupy|no CUDA device") as caught:
        Target.parse("cuda")
    assert "sm_90" in str(caught.value.hint)


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
    assert llvm.host_caches(tmp_path) == {1: 48 << 10, 2: 2 << 20}


def test_keys_tell_machines_apart() -> None:
    keys = {Target.parse(n).key for n in ("x86-64-v3", "x86-64-v4", "cortex-a76", "sm_80", "sm_90")}
    assert len(keys) == 5
    here = Target.host()
    assert [here.with_key(key).key for key in keys] == [*keys] and here.with_key(here.key) == here
