"""Code for other machines: each family of the suite compiles for one; aarch64 runs, emulated."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.codegen.llvm.objects.build import build
from ansorpy.codegen.llvm.threads.team import team_object
from ansorpy.errors import UsageError
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.runtime.entry.module import baseline, build_entry
from ansorpy.runtime.entry.source import EntrySource
from ansorpy.runtime.export import check_exportable, export
from ansorpy.runtime.library.forms import Form
from ansorpy.runtime.planner import plan_kernel, plan_network
from ansorpy.schedule.lowering.program import lower
from ansorpy.search.population import sample_valid
from ansorpy.target import Target
from benchmarks.ops.case import Case
from benchmarks.ops.suite import SMALL
from tests.budget import explores
from tests.runtime import programs

# ELF machine numbers; None: a WebAssembly object.
TARGETS = {
    "x86-64-v2": 62, "x86-64-v3": 62, "x86-64-v4": 62, "znver5": 62,
    "cortex-a76": 183, "aarch64-linux-gnu": 183,
    "riscv64-linux-gnu": 243, "rv64gcv": 243, "wasm32-unknown-unknown": None,
}  # fmt: skip
QEMU, CROSS_CC, SYSROOT = "qemu-aarch64", "aarch64-linux-gnu-gcc", "/usr/aarch64-linux-gnu"


@pytest.mark.parametrize("name", TARGETS)
def test_every_family_compiles_for_one_of_the_targets(name: str, rng: np.random.Generator) -> None:
    target = Target.parse(name)
    for case in SMALL if explores() else SMALL[list(TARGETS).index(name) :: len(TARGETS)]:
        [sketch] = SketchSampler(Task(case.dag, target, 1)).draw(1, rng)
        rows = sample_valid(sketch, 1, rng)
        lowered = lower(sketch.resolve(rows[0]) if len(rows) else ap.State.initial(case.dag))
        for program in filter(None, (lowered.run, lowered.bind)):
            code = build(program, target, symbol="k").code
            if TARGETS[name] is None:
                assert code.startswith(b"\0asm"), case.name
            else:
                assert code.startswith(b"\x7fELF"), case.name
                assert int.from_bytes(code[18:20], "little") == TARGETS[name]


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize(
    "name",
    ["wasm32-unknown-unknown", "i686-linux-gnu", "armv7-linux-gnueabihf", "s390x-linux-gnu",
     "x86_64-unknown-linux-gnux32", "aarch64_be-linux-gnu", "aarch64-apple-darwin",
     "x86_64-pc-windows-msvc"],
)  # fmt: skip
def test_other_machines_than_64_bit_little_endian_elf_have_no_programs(
    name: str, form: Form, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is for 64-bit little-endian machines with ELF files"):
        check_exportable(tmp_path / f"net{form.suffix}", [Target.parse(name)])


@pytest.mark.parametrize("path", ["/dev/null", "."])
def test_libraries_replace_files_only(path: str) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        check_exportable(Path(path), [Target.host()])


def float_abi(image: bytes) -> int:
    """The bits of an ELF header's flags that RISC-V linkers compare: how floats are passed."""
    return int.from_bytes(image[48:52], "little") & 6


@pytest.mark.parametrize("name", ["rv64gcv", "riscv64-linux-gnu"])
def test_all_objects_of_a_library_for_riscv_fit_together(name: str) -> None:
    target = Target.parse(name)
    task = programs.task_of(programs.tail(), "tail", lambda s: s.parallel("T", ["i"]), target)
    plan = plan_kernel(task, {}, target=target, threads=2)
    entry = build_entry(EntrySource(plan, "op"))
    team = team_object(baseline(target), ends_with_library=True)
    assert float_abi(task.built.run.code) == float_abi(entry) == float_abi(team) == 4  # lp64d
    assert b"__atomic" not in entry + team  # a library's functions: the CPU has instructions


@pytest.mark.emulated
@pytest.mark.skipif(
    not (shutil.which(QEMU) and shutil.which(CROSS_CC)),
    reason="needs qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross",
)
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.family)
def test_an_exported_library_and_its_example_run_on_aarch64(case: Case, tmp_path: Path) -> None:
    """The example's first values are the interpreter's on the inputs that it makes up."""
    values = case.values(0)
    for op in case.dag.args:
        if not op.constant:
            count = int(np.prod(op.shape))
            made = (np.arange(count) % 17).astype(np.float32) / np.float32(17)
            values[op.name] = made.reshape(op.shape)
    target = Target.parse("aarch64-linux-gnu")
    kernel = ap.tune(
        case.tensors(), effort="none", target=target, threads=1, db=tmp_path / "tune.db"
    )
    constants = {op.name: values[op.name] for op in case.dag.args if op.constant}
    kernel.bind(**constants).export(tmp_path / "op.so")
    command = [CROSS_CC, "-O1", "op_example.c", "-o", "example", "./op.so", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        [QEMU, "-L", SYSROOT, "./example"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    got = [float(text) for text in re.findall(r"output0\[\d+\] = (\S+)", done.stdout)]
    [output] = case.dag.outputs
    want = np.asarray(run_dag(case.dag, values)[0]).ravel()[:8]
    assert len(got) == min(8, int(np.prod(output.shape)))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.emulated
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize("name", ["aarch64-linux-gnu", "riscv64-linux-gnu", "rv64gcv"])
def test_libraries_linked_by_ziglang(
    name: str, rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static library, which needs no linker, runs in a program without any shared one."""
    target = Target.parse(name)
    arch = target.triple.split("-")[0]
    emulator = shutil.which(f"qemu-{arch}")
    if emulator is None:
        pytest.skip(f"needs qemu-{arch} (qemu-user)")
    monkeypatch.setenv("PATH", "")  # no other compiler driver
    layers = [programs.constants(rng), programs.constants(rng)]
    net = programs.network(layers)
    plan = plan_network(net, programs.tasks(net, target), target=target, threads=2)
    export(plan, tmp_path / "net.so")
    assert int.from_bytes((tmp_path / "net.so").read_bytes()[18:20], "little") == TARGETS[name]
    export(plan, tmp_path / "net.a")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl", "-static"]
    command += ["net_example.c", "net.a", "-lm", "-pthread", "-o", "example"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        [emulator, "./example", "2"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    x = (np.arange(programs.N * programs.K) % 17).astype(np.float32) / np.float32(17)
    wanted = programs.expected(layers, x.reshape(programs.N, programs.K))
    for number, array in enumerate(wanted):
        got = [float(v) for v in re.findall(rf"output{number}\[\d+\] = (\S+)", done.stdout)]
        np.testing.assert_allclose(got, np.ravel(array)[:8], rtol=2e-5, atol=2e-5)
