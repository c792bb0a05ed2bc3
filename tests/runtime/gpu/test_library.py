"""Libraries for GPUs: C around cubins, run on a CUDA driver of the host's with emulated kernels."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.build import CudaCode
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.launch.packed import packed
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import MissingDependency
from ansorpy.graph.memory import ArenaPlan
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.library.elf import find_metadata
from ansorpy.runtime.library.metadata import read_metadata
from ansorpy.runtime.ports import MAX_RANK
from ansorpy.runtime.status import Status, status_error
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.codegen.cuda.emulator import Emulated
from tests.codegen.cuda.simulated import GPU
from tests.conftest import session_seed
from tests.runtime import programs, sized
from tests.runtime.gpu.test_executable import (
    bound,
    gpu_task,
    in_two_kernels,
    panels,
    rows_of_any_number,
)
from tests.tensor_cores import matmul, wgmma_sketches

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("cc") is None, reason="needs a C and C++ compiler"
)
HERE = Path(__file__).parent

Exported = tuple[Path, list[programs.Floats]]
"""A library, and what it computes of its inputs in ``given.npz`` beside it."""

CALLER = """
import sys
import numpy as np
import ansorpy as ap
given = np.load(sys.argv[2])
model = ap.load(sys.argv[1])
for _ in range(3):
    results = model.run(None, dict(given))
np.savez(sys.argv[3], *results)
"""


SIZED_CALLER = """
import sys
import numpy as np
import ansorpy as ap
from ansorpy.errors import AnsorpyError
given = np.load(sys.argv[2])
model = ap.load(sys.argv[1])
results = {}
for number in range(int(given["calls"])):
    feeds = {port.name: given[f"{port.name}{number}"] for port in model.get_inputs()}
    try:
        for k, result in enumerate(model.run(None, feeds)):
            results[f"{number} {k}"] = result
    except AnsorpyError as error:
        print(error)
np.savez(sys.argv[3], **results)
"""


UNLOADER = """
import _ctypes, ctypes, json, sys
import numpy as np

path, given, written, rank, shapes, times, runs = json.loads(sys.argv[1])

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * rank)]

def tensors(arrays):
    made = [Tensor(a.ctypes.data, (ctypes.c_int64 * rank)(*a.shape)) for a in arrays]
    return (Tensor * len(made))(*made)

x = np.load(given)["x"]
results = [np.zeros(shape, np.float32) for shape in shapes]
for _ in range(times):
    library = ctypes.CDLL(path)
    print("init", library.net_init())
    for _ in range(runs):
        print("run", library.net_run(bytes(64), tensors([x]), tensors(results), 1))
    _ctypes.dlclose(library._handle)
np.savez(written, *results)
"""


def emulated(dags: Sequence[tuple[str, ComputeDAG, object]], folder: Path) -> dict[str, ObjectCode]:
    """Object code of each schedule, whose cubin names its kernels on the host.

    Each kernel asks for shared memory, as one with large tiles does.
    """
    sources = []
    for symbol, dag, schedule in dags:
        program = lower(schedule(State.initial(dag)), symbol).run  # type: ignore[operator]
        sources.append((symbol, program, emit_cuda(program, GPU, symbol)))
    Emulated(sources, folder)
    codes = {}
    for symbol, _, source in sources:
        counts = [f"{n.kernel} {len(n.arguments)}" for n in source.plan.launches]
        cubin = f"{folder / 'kernels.so'}\0{' '.join(counts)}\0".encode()
        launches = tuple(replace(n, dynamic_shared_bytes=1 << 16) for n in source.plan.launches)
        plan = replace(source.plan, launches=launches)
        code = CudaCode(source.text, cubin, plan, (), 0.01)
        codes[symbol] = packed(code, symbol)
    return codes


def with_code(task: CompiledTask, code: ObjectCode) -> CompiledTask:
    return replace(task, built=replace(task.built, run=code))


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ``libcuda.so.1`` that runs on the host."""
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", str(HERE / "fake_libcuda.cpp"), "-o",
         str(folder / "libcuda.so.1"), "-ldl", "-pthread"],
        check=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def network_of_sizes(request: pytest.FixtureRequest) -> tuple[sized.Sized, Network]:
    return sized.random_network(np.random.default_rng([session_seed(request.config), 7]), calls=6)


@pytest.fixture(scope="module")
def network_of_alike() -> tuple[sized.Sized, Network]:
    """Two calls of one code, each with a size of its own."""
    made = sized.Sized()
    inputs = [made.value("x", (dim("n", 0, 20), 8)), made.value("w", (dim("m", 0, 20), 8))]
    network = made.network(inputs, [made.joined("y", *inputs)])
    assert len(network.calls) == 2 and len(network.workloads()) == 1
    return made, network


@pytest.fixture(scope="module")
def codes(
    network_of_sizes: tuple[sized.Sized, Network],
    network_of_alike: tuple[sized.Sized, Network],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, ObjectCode]:
    """The kernels of all tests by symbol, which g++ compiles at once."""
    _, network = network_of_sizes
    _, alike = network_of_alike
    dags = [
        ("dense_task", programs.dense(), panels),
        ("tail_task", programs.tail(), bound),
        ("rows", rows_of_any_number(0, 50), in_two_kernels),
        ("product", product_of_any_height(), in_boxes),
        *((f"task{n}", w.dag, bound) for n, w in enumerate(network.workloads())),
        *(("alike", w.dag, bound) for w in alike.workloads()),
    ]
    return emulated(dags, tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def library(codes: dict[str, ObjectCode], tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The library of a network of two dense layers and a tail; inputs and expected outputs."""
    tmp_path, rng = tmp_path_factory.mktemp("library"), np.random.default_rng(11)
    layers = [programs.constants(rng), programs.constants(rng)]
    net = programs.network(layers)
    dags = [("dense_task", net.calls[0].dag, panels), ("tail_task", programs.tail(), bound)]
    keys = [w.key for w in net.workloads()]
    tasks = {
        key: with_code(gpu_task(dag, symbol, schedule), codes[symbol])
        for key, (symbol, dag, schedule) in zip(keys, dags, strict=True)
    }
    model = CompiledModel.of(net, tasks, target=GPU, threads=1, name="demo")
    path = model.export(tmp_path / "net.so")
    x = rng.standard_normal((programs.N, programs.K), dtype=np.float32)
    np.savez(tmp_path / "given.npz", x=x)
    return path, programs.expected(layers, x)


def environment(driver: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(driver), **more}


def called(
    path: Path, driver: Path, caller: str = CALLER, **more: str
) -> subprocess.CompletedProcess[str]:
    """What a process of its own says that loads the library and runs it three times."""
    folder = path.parent
    arguments = [str(path), str(folder / "given.npz"), str(folder / "results.npz")]
    return subprocess.run(
        [sys.executable, "-c", caller, *arguments], env=environment(driver, **more),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_library_runs_with_the_driver_alone(library, driver, tmp_path):
    path, want = library
    log = tmp_path / "calls.txt"
    done = called(path, driver, FAKE_CUDA_LOG=str(log))
    assert done.returncode == 0, done.stderr
    with np.load(path.parent / "results.npz") as results:
        for got, expected in zip(results.values(), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    calls = log.read_text().split("\n")
    assert calls.count("module") == 2 and calls.count("upload constants") == 1
    assert calls.count("capture") == 1 and calls.count("replay") == 2
    assert calls.count("launch") == 2 * 6  # the first run, and the capture
    needed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
    assert "libcuda" not in needed and "gomp" not in needed


def unloaded(
    library: Exported, driver: Path, folder: Path, *, times: int = 1, runs: int = 5,
    refuses: str = "", gpus: int = 1,
) -> tuple[list[str], Counter[str]]:  # fmt: skip
    """Load, run and unload *library* so many *times*: what it returns, and the driver's calls.

    If anything runs, the last results must be right.
    """
    path, want = library
    written, log = folder / "results.npz", folder / "calls.txt"
    shapes = [result.shape for result in want]
    given = str(path.with_name("given.npz"))
    asked = json.dumps([str(path), given, str(written), MAX_RANK, shapes, times, runs])
    done = subprocess.run(
        [sys.executable, "-c", UNLOADER, asked],
        env=environment(
            driver, FAKE_CUDA_LOG=str(log), FAKE_CUDA_REFUSES=refuses, FAKE_CUDA_GPUS=str(gpus)
        ),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if "init 0" in done.stdout:
        with np.load(written) as results:
            for got, expected in zip(results.values(), want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    return done.stdout.splitlines(), Counter(log.read_text().splitlines())


def assert_given_back(calls: Counter[str]) -> None:
    for what in ("memory", "stream", "graph", "instance", "module"):
        assert calls[what] == calls[f"end of {what}"], what
    assert calls["retain"] == calls["release"]


def test_a_library_that_is_unloaded_holds_nothing_of_the_gpu(library, driver, tmp_path):
    said, calls = unloaded(library, driver, tmp_path, times=2)
    assert said == ["init 0", *["run 0"] * 5] * 2
    assert calls["retain"] == 2 and calls["module"] == 4 and calls["memory"] == 2 * 7
    assert_given_back(calls)


@pytest.mark.parametrize(
    ("refuses", "fails_in"),
    [
        ("1 stream", 0), ("2 memory", 0), ("3 memory", 0), ("4 memory", 0), ("7 memory", 0),
        ("1 launch", 0), ("4 launch", 0), ("2 synchronise", 0), ("9 launch", 1), ("1 instance", 1),
        ("1 replay", 1), ("2 replay", 2),
    ],
)  # fmt: skip
def test_a_run_that_fails_gives_back_its_slot_and_the_next_is_right(
    library, driver, tmp_path, refuses, fails_in
):
    said, calls = unloaded(library, driver, tmp_path, refuses=refuses)
    codes = [int(Status.OK)] * 5
    codes[fails_in] = int(Status.GPU_FAILED)
    assert calls["refused"] == 1 and said == ["init 0", *(f"run {code}" for code in codes)]
    assert_given_back(calls)


@pytest.mark.parametrize(
    ("refuses", "code"),
    [
        ("1 module", Status.NO_GPU), ("2 module", Status.NO_GPU),
        ("1 shared memory", Status.NO_GPU), ("1 memory", Status.GPU_FAILED),
        ("1 upload constants", Status.GPU_FAILED),
    ],
)  # fmt: skip
def test_an_init_that_fails_holds_nothing(library, driver, tmp_path, refuses, code):
    said, calls = unloaded(library, driver, tmp_path, runs=1, refuses=refuses)
    assert said == [f"init {int(code)}", f"run {int(Status.NOT_INITIALISED)}"]
    assert calls["refused"] == 1
    assert_given_back(calls)


@pytest.mark.parametrize("refuses", ["2 module", "2 shared memory"])
@pytest.mark.parametrize("asked", [None, "", " "])
def test_the_first_gpu_that_runs_the_code_is_used(
    library, driver, tmp_path, monkeypatch, refuses, asked
):
    if asked is not None:
        monkeypatch.setenv("ANSORPY_DEVICE", asked)
    said, calls = unloaded(library, driver, tmp_path, runs=1, refuses=refuses, gpus=2)
    assert said == ["init 0", "run 0"] and calls["retain"] == 2 and calls["refused"] == 1
    assert_given_back(calls)


@pytest.fixture(scope="module")
def example(library: tuple[Path, object]) -> Path:
    """The example that is written beside a library, compiled."""
    path, _ = library
    made = path.with_name("example")
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", str(path.with_name("net_example.c")), "-o",
         str(made), str(path), "-Wl,-rpath,$ORIGIN"],
        check=True,
    )  # fmt: skip
    return made


def run(
    example: Path, driver: Path, threads: int = 1, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(example), str(threads)], env=environment(driver, **more), capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def test_the_example_runs(example, driver, tmp_path):
    log = tmp_path / "calls.txt"
    done = run(example, driver, FAKE_CUDA_LOG=str(log))
    assert done.returncode == 0 and "output0[0] = " in done.stdout, done.stderr
    assert "end of memory" not in log.read_text(), "the driver is gone at the end of a process"
    assert f"net_plan: code {Status.BAD_THREADS}" in run(example, driver, 0).stderr
    assert "the library itself holds the GPU memory" in example.with_name("net.h").read_text()


@pytest.mark.parametrize("broken", ["no driver", "no device", "not its device"])
def test_without_a_gpu_init_says_so(example, driver, tmp_path, broken):
    more = {"FAKE_CUDA_BROKEN": "1"} if broken == "no device" else {}
    if broken == "not its device":
        more = {"ANSORPY_DEVICE": "3"}
    done = run(example, tmp_path if broken == "no driver" else driver, 1, **more)
    assert f"net_init: code {Status.NO_GPU}" in done.stderr


@pytest.mark.parametrize("asked", ["one", "0x", "0.0", "-1", "1", "9" * 30])
def test_a_variable_that_names_no_gpu_is_an_error(example, driver, asked):
    assert run(example, driver, ANSORPY_DEVICE=" 0 ").returncode == 0
    done = run(example, driver, ANSORPY_DEVICE=asked)
    assert f"net_init: code {Status.NO_GPU}" in done.stderr


def test_what_it_says_of_itself(library):
    path, _ = library
    metadata = read_metadata(find_metadata(path), str(path))
    assert metadata.target.cpu == "sm_80" and metadata.target.required == ()
    assert [spec.name for spec in metadata.inputs] == ["x"]
    assert metadata.constant_bytes > 0


def test_its_digest_tells_what_its_calls_read(tmp_path, rng):
    net = programs.network([programs.constants(rng), programs.constants(rng)])
    rewired = replace(net, calls=(*net.calls[:-1], replace(net.calls[-1], inputs=("first",))))
    dense_key, tail_key = (w.key for w in net.workloads())
    tasks = {
        dense_key: gpu_task(net.calls[0].dag, "dense_task", panels),
        tail_key: gpu_task(programs.tail(), "tail_task", bound),
    }
    digests = []
    for network in (net, net, rewired):
        model = CompiledModel.of(network, tasks, target=GPU, threads=1)
        path = model.export(tmp_path / "net.so")
        digests.append(read_metadata(find_metadata(path), str(path)).digest)
    assert digests[0] == digests[1] != digests[2]


def test_kernels_are_exported_as_models_are(codes, driver, tmp_path, rng):
    w, b = programs.constants(rng)
    task = with_code(gpu_task(programs.dense(), "dense_task", panels), codes["dense_task"])
    kernel = Kernel(task, target=GPU, threads=1).bind(W=w, B=b)
    path = kernel.export(tmp_path / "net.so")
    x = rng.standard_normal((programs.N, programs.K), dtype=np.float32)
    np.savez(tmp_path / "given.npz", X=x)
    done = called(path, driver)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "results.npz") as results:
        want = programs.expected_dense(x, w, b)
        np.testing.assert_allclose(results["arr_0"], want, rtol=1e-5, atol=1e-5)


def test_a_library_takes_every_size(codes, driver, tmp_path, rng):
    dag, log = rows_of_any_number(0, 50), tmp_path / "calls.txt"
    task = with_code(gpu_task(dag, "rows", in_two_kernels), codes["rows"])
    path = Kernel(task, target=GPU, threads=1).export(tmp_path / "net.so")
    numbers = (7, 7, 7, 1, 0, 0, 50, 51, 50, 50)
    given = {
        f"x{k}": rng.standard_normal((rows, 8), dtype=np.float32) for k, rows in enumerate(numbers)
    }
    np.savez(tmp_path / "given.npz", calls=len(given), **given)
    done = called(path, driver, SIZED_CALLER, FAKE_CUDA_LOG=str(log))
    assert done.returncode == 0, done.stderr
    assert "n is from 0 to 50" in done.stdout
    with np.load(tmp_path / "results.npz") as results:
        for k, x in enumerate(given.values()):
            if len(x) <= 50:
                np.testing.assert_array_equal(results[f"{k} 0"], np.maximum(x * 2 + x[:, :1], 0))
    calls = Counter(log.read_text().split("\n"))
    # At 7 and at 50 rows two runs each, the second of which is captured; none without rows.
    assert calls["launch"] == 2 * (2 + 1 + 2) and calls["capture"] == 3
    assert calls["memory"] == 4  # two tensors, the workspace and an arena, for 50 rows


def in_boxes(state: State) -> State:
    """The schedule of a product by warpgroups whose tiles the copy engine fills."""
    rng = np.random.default_rng(5)
    sketch = wgmma_sketches(matmul("float16", 128, 64, 96), rng)[0]
    table = sketch.sample(64, rng)
    table[:, [name.endswith(".bulk") for name in sketch.columns]] = 1
    history = sketch.resolve(table[sketch.valid(table)][0]).history
    return State.replay(state.definition, history)


def product_of_any_height() -> ComputeDAG:
    return ComputeDAG.of(matmul("float16", dim("n", 0, 150), 64, 96))


def test_a_library_makes_maps_of_tensors_of_every_size(codes, driver, tmp_path, rng):
    dag, log = product_of_any_height(), tmp_path / "calls.txt"
    task = with_code(gpu_task(dag, "product", in_boxes), codes["product"])
    path = Kernel(task, target=GPU, threads=1).export(tmp_path / "net.so")
    numbers = (70, 70, 70, 1, 0, 150)
    given = {
        f"A{k}": rng.standard_normal((n, 96)).astype(np.float16) for k, n in enumerate(numbers)
    }
    right = rng.standard_normal((96, 64)).astype(np.float16)
    given |= {f"B{k}": right for k in range(len(numbers))}
    np.savez(tmp_path / "given.npz", calls=len(numbers), **given)
    done = called(path, driver, SIZED_CALLER, FAKE_CUDA_LOG=str(log))
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "results.npz") as results:
        for k in range(len(numbers)):
            want = given[f"A{k}"].astype(np.float32) @ right.astype(np.float32)
            np.testing.assert_allclose(results[f"{k} 0"], want, rtol=0, atol=1e-3)
    # Two maps a launch: of the runs at a new size, and of the run that is captured.
    assert Counter(log.read_text().split("\n"))["map"] == 2 * 4


def test_a_library_of_a_network_takes_every_size(network_of_sizes, codes, driver, tmp_path, rng):
    made, network = network_of_sizes
    symbols = [f"task{n}" for n in range(len(network.workloads()))]
    every = [sized.drawn_sizes(rng) for _ in range(4)]
    assert_right_at(every, made, network, symbols, codes, driver, tmp_path, rng)


def test_calls_of_one_code_have_sizes_of_their_own(network_of_alike, codes, driver, tmp_path, rng):
    made, network = network_of_alike
    every = [{"n": 3, "m": 5}, {"n": 20, "m": 1}, {"n": 0, "m": 7}]
    assert_right_at(every, made, network, ["alike"], codes, driver, tmp_path, rng)


def assert_right_at(
    every: Sequence[Mapping[str, int]], made: sized.Sized, network: Network,
    symbols: Sequence[str], codes: Mapping[str, ObjectCode], driver: Path, tmp_path: Path,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """The library of *network*, whose kernels are these, is right at *every* size."""
    tasks = {
        w.key: with_code(gpu_task(w.dag, symbol, bound), codes[symbol])
        for symbol, w in zip(symbols, network.workloads(), strict=True)
    }
    model = CompiledModel.of(network, tasks, target=GPU, threads=1)
    calls = [sized.feeds(network, sizes, rng) for sizes in every]
    given = {f"{name}{k}": x for k, feeds in enumerate(calls) for name, x in feeds.items()}
    np.savez(tmp_path / "given.npz", calls=len(calls), **given)  # type: ignore[arg-type]
    done = called(model.export(tmp_path / "net.so"), driver, SIZED_CALLER)
    assert done.returncode == 0, done.stderr
    names = [port.name for port in model.get_outputs()]
    with np.load(tmp_path / "results.npz") as results:
        for k, feeds in enumerate(calls):
            for n, want in enumerate(made.results(feeds, names)):
                np.testing.assert_array_equal(results[f"{k} {n}"], want)


def test_tensors_without_elements_take_no_memory(codes, driver, tmp_path, rng):
    rows, nothing = (programs.N, programs.M), (0, programs.M)
    y, past = (TensorInfo(n, s, DType.FLOAT32) for n, s in (("y", rows), ("past", nothing)))
    shapes = {"sums": rows[:1], "more": rows, "none": nothing}
    outputs = tuple(TensorInfo(name, shape, DType.FLOAT32) for name, shape in shapes.items())
    call = Call("tail", programs.tail(), ("y",), {}, ("sums", "more"))
    values = {t.name: t for t in (y, past, *outputs)}
    net = Network((y, past), outputs, values, (call,), ArenaPlan({}, 0))
    task = with_code(gpu_task(programs.tail(), "tail_task", bound), codes["tail_task"])
    model = CompiledModel.of(net, {call.key: task}, target=GPU, threads=1)
    given = rng.standard_normal(rows, dtype=np.float32)
    np.savez(tmp_path / "given.npz", y=given, past=np.zeros(nothing, np.float32))
    done = called(model.export(tmp_path / "net.so"), driver)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "results.npz") as results:
        sums, more, none = results.values()
    np.testing.assert_allclose(sums, given.sum(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(more, given + 1, rtol=1e-5, atol=1e-5)
    assert none.shape == nothing


def test_a_library_may_have_no_calls(driver, tmp_path):
    past, none = (TensorInfo(name, (0, 3), DType.FLOAT32) for name in ("past", "none"))
    values = {t.name: t for t in (past, none)}
    net = Network((past,), (none,), values, (), ArenaPlan({}, 0))
    model = CompiledModel.of(net, {}, target=GPU, threads=1)
    np.savez(tmp_path / "given.npz", past=np.zeros((0, 3), np.float32))
    done = called(model.export(tmp_path / "net.so"), driver)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "results.npz") as results:
        assert results["arr_0"].shape == (0, 3)


def test_codes_of_gpus_are_errors_with_a_way_out() -> None:
    error = status_error("net.so", Status.NO_GPU, [])
    assert isinstance(error, MissingDependency) and "ANSORPY_DEVICE" in (error.hint or "")
    assert "a kernel failed" in str(status_error("net.so", Status.GPU_FAILED, []))
