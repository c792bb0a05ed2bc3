"""Programs in C: run here, written as files, compiled by others with warnings as errors."""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import locale
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.errors import CodegenError, MissingDependency
from ansorpy.runtime.c import source as source_module
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.model import Model
from ansorpy.runtime.status import Status
from ansorpy.target import Target
from tests.codegen.c.compiled import needs_cc, needs_openmp
from tests.codegen.c.sanitized import UNDEFINED
from tests.frontend.test_loops import STEP, floats, looping
from tests.runtime import programs

Rng = np.random.Generator
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1")
pytestmark = needs_cc


def model(
    rng: Rng, name: str = "c"
) -> tuple[CompiledModel, list[tuple[programs.Floats, programs.Floats]]]:
    target = Target.parse(name)
    layers = [programs.constants(rng), programs.constants(rng)]
    net = programs.network(layers)
    made = CompiledModel.of(net, programs.tasks(net, target), target=target, threads=target.cores)
    return made, layers


def compiled(
    folder: Path, *sources: str, library: str = "net.so", flags: tuple[str, ...] = ()
) -> Path:
    """The shared *library* of *sources*, compiled from another folder than theirs."""
    command = [*find_compiler().command, *STRICT, *flags, "-shared", "-fPIC"]
    files = [str(folder / name) for name in sources]
    subprocess.run([*command, *files, "-o", str(folder / library), "-lm"], check=True)
    return folder / library


def assert_runs(runs: Model, layers: list[tuple[programs.Floats, programs.Floats]]) -> None:
    x = programs.feed(np.random.default_rng(1))
    for got, want in zip(runs.run(None, {"x": x}), programs.expected(layers, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "c",
        "c:word=32,l2=0",
        pytest.param("c:cores=2", marks=needs_openmp),
        pytest.param("c:vector=128,cores=2", marks=needs_openmp),
    ],
)
def test_a_model_runs_in_memory_and_as_a_library(name: str, rng: Rng, tmp_path: Path) -> None:
    made, layers = model(rng, name)
    assert_runs(made, layers)
    assert_runs(ap.load(str(made.export(tmp_path / "net.so"))), layers)
    assert {path.name for path in tmp_path.iterdir()} == {"net.so", "net.h", "net_example.c"}


def test_calls_are_timed_one_by_one(rng: Rng) -> None:
    made, _ = model(rng)
    found = made.profile({"x": programs.feed(rng)}, runs=2)
    assert [name for name, _ in found] == ["first", "second", "tail"]


def test_c_files_compile_without_warnings_and_run(rng: Rng, tmp_path: Path) -> None:
    made, layers = model(rng, "c")
    made.export(tmp_path / "net.c")
    assert {p.name for p in tmp_path.iterdir()} == {"net.c", "net.h", "net_example.c"}
    assert_runs(ap.load(str(compiled(tmp_path, "net.c"))), layers)
    command = [*find_compiler().command, *STRICT, "net_example.c", "net.c", "-lm", "-o", "example"]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = subprocess.run(["./example"], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert "output0[0] = " in done.stdout


def test_a_library_for_another_machine_is_refused(rng: Rng, tmp_path: Path) -> None:
    model(rng)[0].export(tmp_path / "net.c")
    library = compiled(tmp_path, "net.c")
    content = bytearray(library.read_bytes())
    content[18:20] = (243).to_bytes(2, "little")  # RISC-V
    library.write_bytes(content)
    with pytest.raises(MissingDependency, match="was built for another processor, which this"):
        ap.load(str(library))


def test_large_constants_are_a_file_beside(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_BYTES", 100)
    made, layers = model(rng, "c")
    made.export(tmp_path / "net.c")
    assert (tmp_path / "net.c.bin").stat().st_size == made.constant_bytes
    assert_runs(ap.load(str(compiled(tmp_path, "net.c"))), layers)
    assert_runs(ap.load(str(made.export(tmp_path / "other.so"))), layers)
    assert not (tmp_path / "other.c.bin").exists()


def test_a_full_disk_leaves_what_was_exported_before(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_BYTES", 100)
    (first, _), (other, _) = model(rng, "c"), model(rng, "c")
    first.export(tmp_path / "net.c")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_text = Path.write_text

    def full(path: Path, text: str, encoding: str) -> int:
        write_text(path, text[: len(text) // 2], encoding)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"No space left on device: .*net\.c"):
        other.export(tmp_path / "net.c")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["net.c", "net.so"])
def test_names_of_any_script_are_written_whatever_the_locale(name: str, tmp_path: Path) -> None:
    x = ap.placeholder((3, 8), name="größe")
    kernel = ap.build([x, ap.compute((3, 8), lambda i, j: x[i, j] + 1.0, name="y")], target="c")
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        kernel.export(tmp_path / name)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    assert "größe" in (tmp_path / "net.h").read_text(encoding="utf-8")


def test_a_name_is_written_as_it_is_though_c_has_trigraphs(tmp_path: Path) -> None:
    x = ap.placeholder((3, 8), name="what??=")
    kernel = ap.build([x, ap.compute((3, 8), lambda i, j: x[i, j] + 1.0, name="y")], target="c")
    library = ap.load(str(kernel.export(tmp_path / "net.so")))
    assert [port.name for port in library.get_inputs()] == ["what??="]


def test_large_constants_may_come_from_elsewhere(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_BYTES", 100)
    made, layers = model(rng, "c")
    made.export(tmp_path / "net.c")
    numbers = ",".join(map(str, (tmp_path / "net.c.bin").read_bytes()))
    (tmp_path / "net.c.bin").unlink()
    text = f"_Alignas(64) const unsigned char net_constants[] = {{{numbers}}};\n"
    (tmp_path / "constants.c").write_text(text)
    flags = ("-DNET_EXTERNAL_CONSTANTS",)
    assert_runs(ap.load(str(compiled(tmp_path, "net.c", "constants.c", flags=flags))), layers)


def test_large_constants_may_be_read_from_a_file(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_BYTES", 100)
    made, layers = model(rng, "c")
    made.export(tmp_path / "net.c")
    path = compiled(tmp_path, "net.c", flags=("-DNET_LOADED_CONSTANTS",))
    library, file = ctypes.CDLL(str(path)), tmp_path / "net.c.bin"
    memory = aligned_empty((made.constant_bytes,), np.uint8)
    place = ctypes.c_void_p(memory.ctypes.data)

    def load(name: Path) -> int:
        return int(library.net_load_constants(str(name).encode(), place))

    assert library.net_init() == library.net_run(None, None, None, 1) == Status.NOT_INITIALISED
    assert load(tmp_path / "none.bin") == Status.NOT_INITIALISED
    content = file.read_bytes()
    for number, other in enumerate((content + b"0", content[:-1], b"\1" + content[1:])):
        wrong = tmp_path / f"{number}.bin"
        wrong.write_bytes(other)
        assert load(wrong) == Status.WRONG_CONSTANTS
    assert library.net_init() == Status.NOT_INITIALISED
    assert load(file) == library.net_init() == Status.OK
    assert_runs(ap.load(str(path)), layers)


@pytest.mark.parametrize("place", [0, -1])
def test_the_constants_of_another_program_are_refused(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    monkeypatch.setattr(source_module, "MOST_BYTES", 100)
    model(rng, "c")[0].export(tmp_path / "net.c")
    content = bytearray((tmp_path / "net.c.bin").read_bytes())
    content[place] ^= 4
    (tmp_path / "net.c.bin").write_bytes(content)
    with pytest.raises(CodegenError, match="constants are not those that belong to the program"):
        ap.load(str(compiled(tmp_path, "net.c")))


def test_several_programs_link_though_they_share_tasks(rng: Rng, tmp_path: Path) -> None:
    for name in ("one", "two"):
        made, _ = model(rng, "c")
        made.export(tmp_path / f"{name}.c")
    library = ctypes.CDLL(str(compiled(tmp_path, "one.c", "two.c", library="both.so")))
    assert library.one_init() == library.two_init() == Status.OK


def test_wrong_arguments_are_refused(rng: Rng, tmp_path: Path) -> None:
    made, _ = model(rng, "c")
    library = ctypes.CDLL(str(made.export(tmp_path / "net.so")))
    size = 8 + 8 * 8  # a tensor: its data and its shape
    inputs, outputs = ctypes.create_string_buffer(size), ctypes.create_string_buffer(3 * size)
    context, needed = ctypes.create_string_buffer(1), ctypes.byref(ctypes.c_size_t())
    assert library.net_plan(inputs, outputs, 0, needed) == Status.BAD_THREADS
    assert library.net_plan(inputs, outputs, 1, None) == Status.NULL_POINTER
    assert library.net_plan(inputs, outputs, 1, needed) == Status.WRONG_SHAPE
    assert library.net_run(context, inputs, outputs, 0) == Status.BAD_THREADS
    assert library.net_run(None, inputs, outputs, 1) == Status.NULL_POINTER
    assert library.net_run(context, inputs, outputs, 1) == Status.NULL_POINTER
    data = np.zeros(1, np.float32)
    ctypes.c_void_p.from_buffer(inputs).value = data.ctypes.data
    for number in range(3):
        ctypes.c_void_p.from_buffer(outputs, number * size).value = data.ctypes.data
    assert library.net_run(context, inputs, outputs, 1) == Status.WRONG_SHAPE
    ctypes.c_int64.from_buffer(inputs, 8).value = programs.N
    ctypes.c_int64.from_buffer(inputs, 16).value = programs.K
    assert library.net_run(context, inputs, outputs, 1) == Status.TOO_SMALL


_MADE_UP = """
#include "net.h"

int main(void) {
    float x[6] = {0}, y[6];
    unsigned char context[4096];
    net_tensor inputs[] = {{x, {2, 3}}}, outputs[] = {{y, {INT64_MAX, INT64_MIN}}};
    if (net_init()) return 4;
    if (net_run(context, inputs, outputs, 1) != NET_TOO_SMALL) return 1;
    outputs[0].shape[1] = 3;
    if (net_run(context, inputs, outputs, 1) != NET_OK) return 2;
    inputs[0].shape[0] = INT64_MIN;
    if (net_run(context, inputs, outputs, 1) != NET_WRONG_SHAPE) return 3;
    inputs[0].shape[0] += 9;
    return net_run(context, inputs, outputs, 1) != NET_WRONG_SHAPE;
}
"""


@pytest.mark.parametrize(("scale", "offset"), [(1, 1), (-1, 9)])
@pytest.mark.parametrize("target", ["c", "host"])
def test_made_up_shapes_are_refused_without_overflow(
    scale: int, offset: int, target: str, tmp_path: Path
) -> None:
    rows = ap.dim("rows", 1, 8)
    extent = scale * rows + offset
    x = ap.placeholder((extent, 3), name="x")
    y = ap.compute((extent, 3), lambda i, j: x[i, j] + 1.0, name="y")
    library = tmp_path / ("net.c" if target == "c" else "net.a")
    ap.build([x, y], target=target).export(library)
    (tmp_path / "main.c").write_text(_MADE_UP)
    files = ["main.c", library.name, "-lm", "-pthread"]
    command = [*find_compiler().command, *STRICT, *UNDEFINED, *files, "-o", "all"]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = subprocess.run(["./all"], cwd=tmp_path, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()


_EMPTY = """
#include "net.h"
#include <stdlib.h>

int main(void) {
    int64_t trips = 2;
    size_t bytes;
    net_tensor inputs[] = {{&trips, {0}}, {NULL, {0, 3}}}, outputs[] = {{NULL, {0}}};
    if (net_plan(inputs, outputs, 1, &bytes)) return 1;
    return net_run(malloc(bytes), inputs, outputs, 1);
}
"""


def test_a_loop_over_a_tensor_without_elements_needs_no_memory_for_it(
    tmp_path: Path, rng: Rng
) -> None:
    body = STEP.replace("float[5, 3]", "float[rows, 3]")
    constants = {"weight": floats(rng, 3, 3), "bound": np.float32(0.3), "begin": np.asarray(True)}
    net = looping(body, {"n": (), "x": ("rows", 3)}, ["n", "begin", "x"], ["y"], constants)
    made = programs.plain_model(net, "c", dims={"rows": (0, 5)})
    made.export(tmp_path / "net.c")
    (tmp_path / "main.c").write_text(_EMPTY)
    command = [*find_compiler().command, *UNDEFINED, "main.c", "net.c", "-lm", "-o", "all"]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = subprocess.run(["./all"], cwd=tmp_path, capture_output=True, check=False,
                          env={"ASAN_OPTIONS": "detect_leaks=0"})  # fmt: skip
    assert not done.returncode, done.stderr.decode()


def test_the_example_of_a_program_without_inputs_is_c11(tmp_path: Path) -> None:
    y = ap.compute((3, 8), lambda i, j: i * 1.0 + j, name="y")
    ap.build([y], target="c").export(tmp_path / "net.c")
    command = [*find_compiler().command, *STRICT, "net_example.c", "net.c", "-lm", "-o", "example"]
    subprocess.run(command, check=True, cwd=tmp_path)
    subprocess.run(["./example"], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)


def test_without_a_compiler_programs_are_exported_but_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    target = Target.parse("c")
    task = programs.task_of(programs.tail(), "tail_task", target=target)
    kernel = Kernel(task, target=target, threads=1)
    assert "int32_t tail_task(" in kernel.export(tmp_path / "tail.c").read_text()
    with pytest.raises(MissingDependency, match="kernel is a C program, and this machine has no"):
        kernel(np.zeros((programs.N, programs.M), np.float32))
    with pytest.raises(
        MissingDependency, match="compiling C needs .* none of cc, gcc, clang or ziglang"
    ):
        kernel.export(tmp_path / "tail.so")
