from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorpy.api.operators import build
from ansorpy.errors import ForeignFile, MissingDependency, UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.library import linker
from ansorpy.runtime.library.checksum import SEAL_BYTES, seal
from ansorpy.runtime.library.elf import find_metadata
from ansorpy.runtime.library.forms import Pack
from ansorpy.runtime.library.linker import library_name
from ansorpy.runtime.library.metadata import read_metadata
from ansorpy.runtime.model import load
from ansorpy.runtime.planner import plan_network
from ansorpy.target import Target
from tests.runtime import programs
from tests.waiting import comes_true

Rng = np.random.Generator
Layers = list[tuple[programs.Floats, programs.Floats]]

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
pytestmark = needs_cc


def plan(rng: Rng) -> tuple[ExecutionPlan, Layers]:
    layers = [programs.constants(rng), programs.constants(rng)]
    net = programs.network(layers)
    return plan_network(net, programs.tasks(net), target=Target.host(), threads=2), layers


def exported(rng: Rng, folder: Path, pack: Pack | None = None) -> Layers:
    """``net.so`` in *folder*; packing makes the weights of its network larger."""
    model, layers = programs.model(rng)
    assert model.export(folder / "net.so", pack) == folder / "net.so"
    return layers


def compiled(folder: Path, source: Path, *options: str) -> Path:
    command = [
        "cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{folder}", str(source),
        "-o", str(folder / "caller"), str(folder / "net.so"), "-Wl,-rpath,$ORIGIN", "-pthread",
        *options,
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return folder / "caller"


@pytest.mark.parametrize("pack", Pack)
def test_a_c_program_gets_the_same_results(rng: Rng, tmp_path: Path, pack: Pack) -> None:
    """Eight C threads, contexts of their own, the first of them making the constants."""
    layers = exported(rng, tmp_path, pack)
    caller = compiled(tmp_path, Path(__file__).parent / "caller.c")
    x = programs.feed(rng)
    x.tofile(tmp_path / "in")
    wanted = np.concatenate([a.ravel() for a in programs.expected(layers, x)])
    for threads in ("1", "2"):
        subprocess.run([caller, "run", threads, tmp_path / "in", tmp_path / "out"], check=True)
        result = np.fromfile(tmp_path / "out", np.float32)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
    subprocess.run([caller, "wrong"], check=True)


def test_the_example_compiles_and_runs(rng: Rng, tmp_path: Path) -> None:
    exported(rng, tmp_path)
    example = compiled(tmp_path, tmp_path / "net_example.c")
    printed = subprocess.run([example, "2"], check=True, capture_output=True, text=True).stdout
    assert len(printed.splitlines()) == 8 + 5 + 8
    assert "nan" not in printed


@pytest.mark.parametrize("stem", ["entry0", "task0", "team", "constants"])
def test_an_object_may_be_called_as_one_of_its_parts(stem: str, rng: Rng, tmp_path: Path) -> None:
    model, _ = programs.model(rng)
    path = model.export(tmp_path / f"{stem}.o")
    files = map(str, (tmp_path / f"{stem}_example.c", path, "-o", tmp_path / "example"))
    subprocess.run(["cc", "-O1", *files, "-lm", "-pthread"], check=True)
    printed = subprocess.check_output([tmp_path / "example", "2"], text=True)
    assert len(printed.splitlines()) == 8 + 5 + 8 and "nan" not in printed


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs binutils")
@pytest.mark.parametrize("pack", Pack)
def test_only_documented_symbols_and_libraries(rng: Rng, tmp_path: Path, pack: Pack) -> None:
    exported(rng, tmp_path, pack)
    library = tmp_path / "net.so"
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True)
    names = {line.split()[2] for line in symbols.splitlines()}
    assert names == {"net_init", "net_plan", "net_run", "net_metadata"}
    header = (tmp_path / "net.h").read_text()
    assert all(name in header for name in names)
    dynamic = subprocess.check_output(["readelf", "-d", library], text=True)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    assert needed == {"libc.so.6"}
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["net.h", "net.so", "net_example.c"]


def test_the_version_of_a_library_is_no_part_of_other_names(rng: Rng, tmp_path: Path) -> None:
    model, layers = programs.model(rng)
    library = model.export(tmp_path / "net.so.1.2")
    assert {path.name for path in tmp_path.iterdir()} == {"net.so.1.2", "net.h", "net_example.c"}
    header = (tmp_path / "net.h").read_text()
    assert "net_run(" in header and "net_so" not in header
    assert '#include "net.h"' in (tmp_path / "net_example.c").read_text()
    x = programs.feed(rng)
    results = load(library).run(None, {"x": x})
    for result, wanted in zip(results, programs.expected(layers, x), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pack", Pack)
def test_load_gives_the_model_back(rng: Rng, tmp_path: Path, pack: Pack) -> None:
    layers = exported(rng, tmp_path, pack)
    model = load(tmp_path / "net.so")
    x = programs.feed(rng)
    for threads in (None, 1, 2):
        results = model.run(None, {"x": x}, threads=threads)
        for result, expected in zip(results, programs.expected(layers, x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert [port.name for port in model.get_outputs()] == ["first", "sum/rows", "plus one"]
    with pytest.raises(UsageError, match="loaded from a library"):
        model.export(tmp_path / "again.so")


def test_loading_reads_the_constants_in(rng: Rng, tmp_path: Path) -> None:
    """The first run finds all pages in memory."""
    x, w = placeholder((1100,), name="X"), placeholder((700, 1100), name="W", constant=True)
    out = compute((700, 1100), lambda i, j: x[j] * w[i, j], name="Y")
    host = Target.host()
    kernel = Kernel(programs.task_of(ComputeDAG([out], [x, w]), "scaled"), target=host, threads=1)
    given = rng.standard_normal(w.shape, dtype=np.float32)
    model = load(kernel.bind(W=given).export(tmp_path / "net.so"))
    assert model.constant_bytes >= given.nbytes
    assert resident_bytes(tmp_path / "net.so") >= model.constant_bytes
    row = np.ones(1100, np.float32)
    np.testing.assert_array_equal(model.run(None, {"X": row})[0], given)


def resident_bytes(file: Path) -> int:
    """Bytes of *file* that this process has mapped and that are in memory."""
    total, counts = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            counts = line.endswith(str(file))
        elif counts and first == "Rss:":
            total += int(rest.split()[0]) * 1024
    return total


def test_equal_models_make_equal_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the memory of their constants held before; these fill no cache line."""
    x, v, w = (placeholder((5,), name=name, constant=name != "X") for name in "XVW")
    twice = compute((5,), lambda i: w[i] * 2.0, name="T")  # once, when they are bound
    out = compute((5,), lambda i: x[i] * v[i] + twice[i], name="Y")
    task = programs.task_of(ComputeDAG([out], [x, v, w]), "small")
    ones = np.ones(5, np.float32)
    libraries, allocate = [], np.empty
    for number in (1, 2):

        def used_before(shape: Any, dtype: Any = float, byte: int = number) -> np.ndarray:
            array = allocate(shape, dtype)
            array.view(np.uint8).fill(byte)
            return array

        monkeypatch.setattr(np, "empty", used_before)
        folder = tmp_path / str(number)
        folder.mkdir()
        kernel = Kernel(task, target=Target.host(), threads=1).bind(V=ones, W=ones)
        libraries.append(kernel.export(folder / "net.so").read_bytes())
    assert libraries[0] == libraries[1]


def test_metadata(rng: Rng, tmp_path: Path) -> None:
    exported(rng, tmp_path)
    metadata = read_metadata(find_metadata(tmp_path / "net.so"), "net.so")
    assert (metadata.name, metadata.kind, metadata.threads) == ("net", "model", 2)
    assert metadata.target.triple == Target.host().triple
    assert metadata.inputs[0].shape == (5, 12)


def test_a_moved_and_a_replaced_library_is_read_anew(rng: Rng, tmp_path: Path) -> None:
    first = exported(rng, tmp_path)
    (tmp_path / "net.so").rename(tmp_path / "moved.so")
    second = exported(rng, tmp_path)
    old, one = load(tmp_path / "moved.so"), load(tmp_path / "net.so")
    third = exported(rng, tmp_path)
    two = load(tmp_path / "net.so")
    x = programs.feed(rng)
    for model, layers in ((old, first), (one, second), (two, third), (one, second)):
        [result] = model.run(["first"], {"x": x})
        expected = programs.expected(layers, x)[0]
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pack", Pack)
def test_a_library_that_differs_in_what_its_calls_read_is_read_anew(
    rng: Rng, tmp_path: Path, pack: Pack
) -> None:
    layers = [programs.constants(rng), programs.constants(rng)]
    net = programs.network(layers)
    tail = net.calls[-1]
    assert tail.inputs == ("second",)
    other = replace(net, calls=(*net.calls[:-1], replace(tail, inputs=("first",))))
    x, path = programs.feed(rng), tmp_path / "net.so"
    for network, layer in ((net, layers[1]), (other, layers[0]), (net, layers[1])):
        host, tasks = Target.host(), programs.tasks(network)
        CompiledModel.of(network, tasks, target=host, threads=2).export(path, pack)
        [result] = load(path).run(["plus one"], {"x": x})
        expected = programs.expected_dense(x, *layer) + 1
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_library_replaced_by_one_of_another_name_is_read_anew(rng: Rng, tmp_path: Path) -> None:
    exported(rng, tmp_path)
    one = load(tmp_path / "net.so")
    programs.model(rng)[0].export(tmp_path / "other.so").replace(tmp_path / "net.so")
    two = load(tmp_path / "net.so")
    assert (one.name, two.name) == ("net", "other")


def test_a_library_that_is_replaced_while_it_is_read_is_refused(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls would get the tensors of another program."""
    path, copy = tmp_path / "net.so", shutil.copy
    exported(rng, tmp_path)
    held = load(path)
    exported(rng, tmp_path)

    def replaced(source: Path, folder: str) -> str:
        summed().export(path)
        return str(copy(source, folder))

    monkeypatch.setattr(shutil, "copy", replaced)
    with pytest.raises(ForeignFile, match="was changed after it was made"):
        load(path)
    assert held.name == "net"


def test_a_library_is_unloaded_with_its_last_model(rng: Rng, tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/task"))
    for number in range(2):
        layers = exported(rng, tmp_path)
        model = load(tmp_path / "net.so")
        x, results = programs.feed(rng), [np.empty(p.shape, p.dtype) for p in model.get_outputs()]
        run = model.prepare({"x": x}, results)
        del model
        gc.collect()
        assert str(tmp_path) in Path("/proc/self/maps").read_text(), number
        run()
        np.testing.assert_allclose(results[0], programs.expected(layers, x)[0], 1e-4, 1e-5)
        del run
        gc.collect()
        assert str(tmp_path) not in Path("/proc/self/maps").read_text(), number
        # The system lists a thread for a while after it was joined.
        assert comes_true(lambda: set(os.listdir("/proc/self/task")) <= before)


RUN_IT = """
import sys
import numpy as np
import ansorpy as ap
model = ap.load(sys.argv[1])
[port] = model.get_inputs()
model.run(None, {port.name: np.ones(port.shape, port.dtype)})
print(*(name for name in sys.modules if name.startswith("ansorpy.") or "." not in name))
"""
RUNS = {
    "codegen", "config", "dlpack", "errors", "ir", "notebook", "quantities", "rates", "registry",
    "runtime", "target", "version",
}  # fmt: skip


def test_running_a_library_loads_no_compiler(rng: Rng, tmp_path: Path) -> None:
    exported(rng, tmp_path)
    command = [sys.executable, "-c", RUN_IT, str(tmp_path / "net.so")]
    loaded = set(subprocess.check_output(command, text=True).split())
    assert not loaded & {"islpy", "lightgbm", "llvmlite", "networkx", "onnx", "sqlite3"}
    own = {name for name in loaded if name.startswith("ansorpy.")}
    assert {name.split(".")[1] for name in own} <= RUNS
    assert len(own) <= 40


def test_a_library_for_another_machine_is_refused(rng: Rng, tmp_path: Path) -> None:
    exported(rng, tmp_path)
    content = bytearray((tmp_path / "net.so").read_bytes())
    content[18:20] = (243).to_bytes(2, "little")  # RISC-V
    (tmp_path / "moved.so").write_bytes(content[:-SEAL_BYTES])
    seal(tmp_path / "moved.so")
    with pytest.raises(MissingDependency, match="this machine cannot run\nhint: load it there, or"):
        load(tmp_path / "moved.so")


def test_names_that_differ_in_case_only_do_not_share_a_file(tmp_path: Path) -> None:
    kernel = Kernel(programs.task_of(programs.tail(), "tail"), target=Target.host(), threads=1)
    for name in ("net", "Net", "other"):
        kernel.export(tmp_path / f"{name}.so")

    def said(*names: str) -> str:
        lines = [f'#include "{name}.h"\nint (*init_{n})(void) = {name}_init;\n'
                 for n, name in enumerate(names)]  # fmt: skip
        (tmp_path / "both.c").write_text("".join(lines))
        command = ["cc", "-fsyntax-only", "both.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stderr

    assert said("net", "other", "net") == said("Net", "other") == ""
    assert "another library differs from Net in case only" in said("net", "Net")


def test_a_kernel_without_threads_needs_libc_only(rng: Rng, tmp_path: Path) -> None:
    kernel = Kernel(programs.task_of(programs.tail(), "tail"), target=Target.host(), threads=1)
    library = kernel.export(tmp_path / "2nd-try.so")
    assert b"pthread_create" not in library.read_bytes()
    assert "int net_2nd_try_init(void)" in (tmp_path / "2nd-try.h").read_text()
    y = rng.standard_normal((programs.N, programs.M), dtype=np.float32)
    _, plus = load(library).run(None, {"Y": y})
    np.testing.assert_array_equal(plus, y + 1)


def test_another_cpu_is_refused_with_a_code(rng: Rng, tmp_path: Path) -> None:
    """No CPU has both AMD's XOP (Bulldozer) and AVX-512 ER (Xeon Phi)."""
    made, _ = plan(rng)
    target = made.target
    alien = replace(target, features=target.features + ",+avx512er,+xop")
    export(replace(made, target=alien), tmp_path / "net.so")
    with pytest.raises(MissingDependency, match="instructions this machine lacks.*avx512er"):
        load(tmp_path / "net.so")
    caller = compiled(tmp_path, Path(__file__).parent / "caller.c")
    assert subprocess.run([caller, "init"], check=False).returncode == 1


def test_foreign_files(tmp_path: Path, rng: Rng) -> None:
    path = tmp_path / "net.so"
    for content in (b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200):
        path.write_bytes(content)
        with pytest.raises(ForeignFile, match="it is not a shared library.*\nhint: copy it again"):
            load(path)
    path.write_bytes(b"\x08onnx" * 40)
    with pytest.raises(ForeignFile, match="is not a library that ansorpy made") as caught:
        load(path)
    assert caught.value.hint == "make one with: ansorpy compile net.onnx -o net.so"
    with pytest.raises(ForeignFile, match="No such file"):
        load(tmp_path / "absent.so")
    with pytest.raises(ForeignFile, match="Is a directory"):
        load(tmp_path)
    source = tmp_path / "other.c"
    source.write_text('const char thing_metadata[] = "{}"; const char x[] = "y";')
    for flags, message in ((["-Dthing_metadata=z"], "not a library that ansorpy made"),
                           ([], "made by another version of ansorpy")):  # fmt: skip
        subprocess.run(["cc", "-shared", *flags, source, "-o", path], check=True)
        with pytest.raises(ForeignFile, match=message):
            load(path)


def test_a_truncated_library(rng: Rng, tmp_path: Path) -> None:
    exported(rng, tmp_path)
    content = (tmp_path / "net.so").read_bytes()
    for size in range(0, len(content), 997):
        (tmp_path / "cut.so").write_bytes(content[:size])
        with pytest.raises(ForeignFile):
            load(tmp_path / "cut.so")


def summed(target: str = "host") -> Kernel:
    """An input plus ones."""
    x, w = placeholder((3, 8), name="x"), placeholder((8,), name="w", constant=True)
    kernel = build([x, w, compute((3, 8), lambda i, j: x[i, j] + w[j], name="y")], target=target)
    return kernel.bind(w=np.ones(8, np.float32))


@pytest.mark.parametrize("target", ["host", "c"])
def test_paths_may_have_commas(target: str, tmp_path: Path) -> None:
    kernel = summed(target)
    (tmp_path / "nets, compiled").mkdir()
    path = kernel.export(tmp_path / "nets, compiled" / "net,2.so")
    [y] = load(path).run(None, {"x": np.ones((3, 8), np.float32)})
    assert (y == 2).all()


@pytest.mark.parametrize("name", ["net.so", "net.a", "net.ll", "net.s"])
def test_what_others_have_open_is_replaced_and_not_overwritten(name: str, tmp_path: Path) -> None:
    kernel = summed()
    kernel.export(tmp_path / name)
    with ExitStack() as stack:
        held = [stack.enter_context(path.open("rb")) for path in tmp_path.iterdir()]
        kernel.export(tmp_path / name)
        assert [os.fstat(file.fileno()).st_nlink for file in held] == [0] * len(held)


def test_the_folder_has_to_exist(rng: Rng, tmp_path: Path) -> None:
    model, _ = programs.model(rng)
    with pytest.raises(UsageError, match="cannot write .*: No such file or directory"):
        model.export(tmp_path / "absent" / "net.so")


def test_constants_beyond_what_one_library_holds(
    rng: Rng, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linker, "MAX_BYTES", 1000)
    net = programs.network([programs.constants(rng), programs.constants(rng)])
    target = Target.parse("aarch64-linux-gnu")
    tasks = programs.tasks(net, target)
    made = plan_network(net, tasks, target=target, threads=2)
    with pytest.raises(UsageError, match="for aarch64-linux-gnu holds up to 2 GiB") as caught:
        export(made, tmp_path / "net.a")
    assert "x86-64 CPU, which holds any size" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("x86_64" not in Target.host().triple, reason="needs sections far away")
@pytest.mark.parametrize("pack", Pack)
def test_constants_may_be_farther_away_than_2_gib(
    rng: Rng, tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in the file, and those that init makes, as the linker would place large ones."""
    places = {".lrodata": 6 << 30, ".lbss": 3 << 30}
    options = [f"-Wl,--section-start={name}={place:#x}" for name, place in places.items()]
    monkeypatch.setenv("CC", " ".join(["cc", *options]))
    layers = exported(rng, tmp_path, pack)
    x = programs.feed(rng)
    results = load(tmp_path / "net.so").run(None, {"x": x})
    for result, expected in zip(results, programs.expected(layers, x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("net.so", "net"),
        ("my-net.v2.so", "my_net_v2"),
        ("net.so.1.2", "net"),
        ("3d.so", "net_3d"),
        ("größe.so", "gr__e"),
        ("模型.so", "net___"),
        ("sem.so", "net_sem"),
        ("cnd.c", "net_cnd"),
        ("pthread_attr.so", "net_pthread_attr"),
        ("semantic.so", "semantic"),
    ],
)
def test_symbol_prefix(file: str, name: str) -> None:
    assert library_name(Path(file)) == name
