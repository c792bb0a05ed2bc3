"""Models and libraries whose shapes depend on dimensions: memory, results, and refusals."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers

import ansorpy as ap
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.graph.network import Network
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.runtime import executable
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.library.elf import find_metadata
from ansorpy.runtime.library.forms import Pack
from ansorpy.runtime.library.metadata import read_metadata
from ansorpy.runtime.model import Model
from ansorpy.runtime.ports import CTensor
from ansorpy.runtime.status import Status
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.budget import examples
from tests.codegen.c.compiled import needs_cc
from tests.runtime import sized
from tests.runtime.programs import task_of
from tests.runtime.sized import Sized

Rng = np.random.Generator
STRICT = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1")


def assert_right(model: Model, made: Sized, network: Network, rng: Rng, times: int = 4) -> None:
    names = [info.name for info in network.outputs]
    for _ in range(times):
        feeds = sized.feeds(network, sized.drawn_sizes(rng), rng)
        got = model.run(None, feeds, threads=int(rng.integers(1, 4)))
        for result, want in zip(got, made.results(feeds, names), strict=True):
            np.testing.assert_array_equal(result, want)


@examples(25)
@given(seed=integers(0, 2**32 - 1))
def test_a_model_computes_at_all_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made, network = sized.random_network(rng)
    assert_right(sized.model(network), made, network, rng)


# Libraries


@dataclass(frozen=True)
class Called:
    """A library called as from C, with contexts and outputs of exactly the bytes they need."""

    library: ctypes.CDLL
    outputs: int

    @staticmethod
    def of(path: Path, network: Network) -> Called:
        library = ctypes.CDLL(str(path))
        assert library.net_init() == Status.OK
        return Called(library, len(network.outputs))

    def plan(self, shapes: Sequence[Sequence[int]]) -> tuple[int, list[list[int]], int]:
        """Status, shapes of the outputs up to the rank of matrices, and bytes of the context."""
        size, made = ctypes.c_size_t(), (CTensor * self.outputs)()
        inputs = tensors(shapes)
        status = self.library.net_plan(inputs, made, 2, ctypes.byref(size))
        return status, [list(tensor.shape[:2]) for tensor in made], size.value

    def run(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray], size: int) -> int:
        """Run in a context of *size* bytes, behind which nothing may be written."""
        memory = np.full(size + 65, 0x5A, np.uint8)
        given = tensors([a.shape for a in arrays], arrays)
        made = tensors([(o.size, *[1] * (o.ndim - 1)) for o in outputs], outputs)
        status = self.library.net_run(ctypes.c_void_p(memory.ctypes.data + 1), given, made, 2)
        assert memory[0] == 0x5A and (memory[size + 1 :] == 0x5A).all()
        return int(status)


def tensors(
    shapes: Sequence[Sequence[int]], arrays: Sequence[np.ndarray] | None = None
) -> ctypes.Array[CTensor]:
    made = (CTensor * len(shapes))()
    for number, shape in enumerate(shapes):
        made[number].shape[: len(shape)] = tuple(shape)
        if arrays is not None and arrays[number].size:
            made[number].data = arrays[number].ctypes.data
    return made


def c_library(folder: Path, model: CompiledModel | Kernel) -> Path:
    """The C files of *model*, compiled with warnings as errors."""
    source = model.export(folder / "net.c")
    library = folder / "net.so"
    subprocess.run([*STRICT, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    return library


def assert_called(path: Path, made: Sized, network: Network, rng: Rng) -> None:
    called, names = Called.of(path, network), [info.name for info in network.outputs]
    sizes = [sized.drawn_sizes(rng) for _ in range(4)]
    planned: list[int] = []
    for stated in (*sizes, {"n": 37, "m": 23}):
        feeds = sized.feeds(network, stated, rng)
        shapes = [feeds[info.name].shape for info in network.inputs]
        status, found, size = called.plan(shapes)
        want = made.results(feeds, names)
        assert status == Status.OK
        assert [s[: w.ndim] for s, w in zip(found, want, strict=True)] == [[*w.shape] for w in want]
        got = [np.full(w.shape, 99, np.int64) for w in want]
        assert called.run([feeds[info.name] for info in network.inputs], got, size) == Status.OK
        for result, wanted in zip(got, want, strict=True):
            np.testing.assert_array_equal(result, wanted)
        planned.append(size)
    assert max(planned) == planned[-1] and planned[-1] - min(planned) <= network.arena.bytes


@examples(15)
@given(seed=integers(0, 2**32 - 1))
def test_a_library_plans_and_computes_at_all_sizes(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    made, network = sized.random_network(rng)
    path = sized.model(network).export(tmp_path_factory.mktemp("sized") / "net.so")
    assert_called(path, made, network, rng)
    assert_right(ap.load(path), made, network, rng)


@needs_cc
@pytest.mark.parametrize("seed", [4])
def test_c_files_plan_and_compute_at_all_sizes(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    made, network = sized.random_network(rng)
    path = c_library(tmp_path, sized.model(network, "c", threads=1))
    assert_called(path, made, network, rng)
    assert_right(ap.load(path), made, network, rng)
    example = [*STRICT, "net_example.c", "net.c", "-lm", "-o", "example"]
    subprocess.run(example, cwd=tmp_path, check=True)
    assert "output0[0] = " in subprocess.check_output(["./example"], cwd=tmp_path, text=True)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sized, Network]:
    """The library of a few values one after another, with shapes of ``n`` and ``m``."""
    made = Sized()
    inputs = [made.value("x", (sized.N, 8)), made.value("w", (sized.M, 8))]
    joined = made.joined("j", *inputs)
    twice = made.combined("t", joined, joined, 3)
    outputs = [made.combined("y", twice, joined, 2), made.total("s", "x", "w", (sized.N // 2, 3))]
    network = made.network(inputs, outputs)
    path = sized.model(network).export(tmp_path_factory.mktemp("chain") / "net.so")
    return path, made, network


def test_wrong_calls_from_c_are_refused(chain: tuple[Path, Sized, Network]) -> None:
    called = Called.of(chain[0], chain[2])
    assert called.plan([(5, 8), (3, 8)])[:2] == (Status.OK, [[8, 8], [2, 3]])
    for wrong in ([(38, 8), (3, 8)], [(5, 8), (0, 8)], [(-1, 8), (3, 8)], [(5, 7), (3, 8)]):
        assert called.plan(wrong)[0] == Status.WRONG_SHAPE
    arrays = [np.ones(shape, np.int64) for shape in ((5, 8), (3, 8), (8, 8), (2, 3))]
    size = called.plan([(5, 8), (3, 8)])[2]
    assert called.run(arrays[:2], arrays[2:], size) == Status.OK
    assert called.run(arrays[:2], [arrays[2], arrays[3][:1]], size) == Status.TOO_SMALL
    assert called.run(arrays[:2], [arrays[2], np.ones((3, 3), np.int64)], size) == Status.OK
    assert called.run(arrays[1::-1], arrays[2:], size) == Status.OK  # n=3, m=5
    assert called.run([arrays[2][:, :7], arrays[1]], arrays[2:], size) == Status.WRONG_SHAPE
    empty = [np.ones((0, 8), np.int64), arrays[1], arrays[1], np.ones((0, 3), np.int64)]
    assert called.run(empty[:2], empty[2:], size) == Status.OK  # addresses of nothing are null
    assert called.library.net_plan(tensors([(5, 8), (3, 8)]), None, 1, None) == Status.NULL_POINTER


def test_a_context_for_small_sizes_is_small(chain: tuple[Path, Sized, Network]) -> None:
    called = Called.of(chain[0], chain[2])
    small, large = (called.plan([(n, 8), (m, 8)])[2] for n, m in ((0, 1), (37, 23)))
    assert small < 400 and large - small == chain[2].arena.bytes - 2 * 64


def test_wrong_feeds_are_refused(chain: tuple[Path, Sized, Network]) -> None:
    model = ap.load(chain[0])
    x, w = np.ones((5, 8), np.int64), np.ones((3, 8), np.int64)
    wrong: list[tuple[Mapping[str, Any], str]] = [
        ({"x": np.ones((38, 8), np.int64), "w": w},
         "axis 0 of input 'x' has 38 elements, but its extent is n, where n is from 0 to 37"),
        ({"x": x[0], "w": w}, "input 'x' has 2 axes, got 1 axes"),
        ({"x": [[1], [1, 2]], "w": w}, "input 'x' cannot be used: .*inhomogeneous"),
        ({"x": x[:, :7], "w": w}, "input 'x' takes 5x8 of int64, got 5x7 of int64"),
        ({"x": x.astype(np.int32), "w": w}, "takes 5x8 of int64, got 5x8 of int32"),
    ]  # fmt: skip
    for feeds, message in wrong:
        with pytest.raises(UsageError, match=message):
            model.run(None, feeds)
    with pytest.raises(UsageError, match="output 's' takes 2x3 of int64, got 3x3 of int64"):
        model.run(["s"], {"x": x, "w": w}, [np.ones((3, 3), np.int64)])


def test_outputs_prepared_runs_and_profiles(chain: tuple[Path, Sized, Network]) -> None:
    _, made, network = chain
    model, rng = sized.model(network), np.random.default_rng(3)
    assert [str(port.shape) for port in model.get_outputs()] == ["(m + n, 8)", "(n//2, 3)"]
    assert "n//2" in repr(model.get_outputs()[1].shape)
    found = model.footprint
    assert found.arena == network.arena.bytes and found.ports == (37 + 23) * 128 + 18 * 24
    for n, m in ((5, 3), (0, 1), (37, 23), (5, 3)):
        feeds = sized.feeds(network, {"n": n, "m": m}, rng)
        want = made.results(feeds, ["y", "s"])
        mine = [np.full(w.shape, 99, np.int64) for w in want]
        model.prepare(feeds, mine)()
        np.testing.assert_array_equal(mine[0], want[0])
        [s] = model.run(["s"], {"x": feeds["x"].tolist() if n else feeds["x"], "w": feeds["w"]})
        np.testing.assert_array_equal(s, want[1])
        assert model.run(["s", "y"], feeds, mine[::-1])[1] is mine[0]
        assert len(model.profile(feeds, runs=2)) == len(network.calls)


def test_contexts_grow_in_steps(
    chain: tuple[Path, Sized, Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes that grow one by one take new memory seldom, and sizes that return never."""
    sizes: list[int] = []

    def noted(shape: Sequence[int], dtype: Any) -> np.ndarray:
        sizes.append(shape[0])
        return aligned_empty(shape, dtype)

    monkeypatch.setattr(executable, "aligned_empty", noted)
    _, made, network = chain
    model = ap.load(chain[0])
    for _ in range(2):
        for n in range(38):
            feeds = sized.feeds(network, {"n": n, "m": 1}, np.random.default_rng(n))
            for got, want in zip(
                model.run(None, feeds), made.results(feeds, ["y", "s"]), strict=True
            ):
                np.testing.assert_array_equal(got, want)
    largest = Called.of(chain[0], network).plan([(37, 8), (23, 8)])[2]
    assert len(sizes) < 8 and sizes == sorted(sizes) and sizes[-1] <= largest


def test_a_call_without_memory_leaves_none_to_the_next_one(
    chain: tuple[Path, Sized, Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1 << 60
    made_bytes: list[int] = []

    def limited(shape: Sequence[int], dtype: Any) -> np.ndarray:
        if shape[0] > limit:
            raise MemoryError
        made_bytes.append(shape[0])
        return aligned_empty(shape, dtype)

    monkeypatch.setattr(executable, "aligned_empty", limited)
    path, made, network = chain
    model, called = ap.load(path), Called.of(path, network)

    def run(n: int, m: int) -> None:
        feeds = sized.feeds(network, {"n": n, "m": m}, np.random.default_rng(n))
        want = made.results(feeds, ["y", "s"])
        for got, right in zip(model.run(None, feeds), want, strict=True):
            np.testing.assert_array_equal(got, right)

    sizes = (9, 1), (12, 1), (37, 23)
    small, middle, large = (called.plan([(n, 8), (m, 8)])[2] for n, m in sizes)
    run(9, 1)
    limit = middle  # twice the memory of before would be more
    run(12, 1)
    with pytest.raises(MemoryError):
        run(37, 23)
    limit = large
    run(37, 23)
    assert made_bytes == [small, middle, large]


# Kernels and names


def halves(n: Any) -> ComputeDAG:
    x = placeholder((n * 2 + 1, 4), DType.INT64, name="x")
    y = compute((n, 4), lambda i, j: x[i * 2, j] + x[i * 2 + 1, j], name="y")
    return ComputeDAG([y], [x])


def test_a_kernel_of_all_sizes_is_exported(tmp_path: Path) -> None:
    kernel = ap.build(ap.State.initial(halves(dim("n", 0, 20))))
    model = ap.load(kernel.export(tmp_path / "half.so"))
    for n in (0, 1, 13, 20):
        x = np.arange(8 * n + 4).reshape(-1, 4)
        [y] = model.run(None, {"x": x})
        np.testing.assert_array_equal(y, x[: 2 * n : 2] + x[1::2])
    with pytest.raises(UsageError, match=r"has 4 elements, but its extent is 2\*n \+ 1"):
        model.run(None, {"x": x[:4]})
    header = (tmp_path / "half.h").read_text()
    assert "int64 [2*n + 1, 4]  x" in header and "n=0..20" in header


@pytest.mark.parametrize("form", [pytest.param("c", marks=needs_cc), "so"])
def test_the_workspace_of_a_call_has_the_room_of_its_sizes(
    form: str, tmp_path: Path, rng: Rng
) -> None:
    """Two intermediates of two sizes, and scratch memory of each thread behind them."""
    n, m = dim("n", 0, 300), dim("m", 1, 200)
    x, w = (placeholder((size, 9), DType.INT64, name=name) for size, name in ((n, "x"), (m, "w")))
    a = compute((n, 9), lambda i, j: x[i, j] * 2, name="a")
    b = compute((m, 9), lambda i, j: w[i, j] + 1, name="b")
    k = reduce_axis(9, name="k")
    c = compute((n, 700), lambda i, j: a[i, j % 9] * j, name="c")
    y = compute((n, m), lambda i, j: ap.sum(a[i, k] * b[j, k] + c[i, k * 77], axis=k), name="y")
    state = State.initial([x, w, y]).compute_at("c", "y", "i").parallel("y", ["i"])
    kernel = ap.build(state, target="c:cores=2" if form == "c" else None, threads=2)
    is_c = form == "c"
    path = c_library(tmp_path, kernel) if is_c else kernel.export(tmp_path / "net.so")
    library = ctypes.CDLL(str(path))
    assert library.net_init() == Status.OK
    called = Called(library, 1)
    fixed = called.plan([(0, 9), (1, 9)])[2]
    for rows, columns in ((0, 1), (3, 1), (1, 200), (300, 7), (300, 200)):
        xs, ws = (rng.integers(-9, 9, (size, 9)) for size in (rows, columns))
        status, _, size = called.plan([xs.shape, ws.shape])
        assert status == Status.OK and abs(size - fixed - 72 * (rows + columns - 1)) <= 128
        got = np.full((rows, columns), 99, np.int64)
        assert called.run([xs, ws], [got], size) == Status.OK
        third = 2 * xs[:, np.arange(9) * 77 % 9] * np.arange(9) * 77
        np.testing.assert_array_equal(got, 2 * xs @ (ws + 1).T + third.sum(1)[:, None])


@pytest.mark.parametrize("pack", Pack)
def test_constants_are_packed_once_for_all_sizes(pack: Pack, tmp_path: Path, rng: Rng) -> None:
    n, host = dim("n", 0, 31), Target.host()
    x = placeholder((n, 12), name="x")
    w = placeholder((12, 16), name="w", constant=True)
    k = reduce_axis(12, name="k")
    y = compute((n, 16), lambda i, j: ap.sum(x[i, k] * w[k, j], axis=k), name="y")

    def packed(state: State) -> State:
        state, _ = state.split("y", "j", (10,))  # 16 columns become 20
        return state.reorder("y", ["j.0", "i", "k", "j.1"]).pack("y", "w")

    task = task_of(ComputeDAG([y], [x, w]), "rows", packed)
    weights = rng.integers(-9, 9, (12, 16)).astype(np.float32)
    kernel = Kernel(task, target=host, threads=1).bind(w=weights)
    model = ap.load(kernel.export(tmp_path / "net.so", pack))
    for size in (0, 1, 7, 31):
        rows = rng.integers(-9, 9, (size, 12)).astype(np.float32)
        np.testing.assert_array_equal(model.run(None, {"x": rows})[0], rows @ weights)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_example_takes_sizes(tmp_path: Path) -> None:
    ap.build(ap.State.initial(halves(dim("n", 0, 20)))).export(tmp_path / "half.so")
    command = [*STRICT, "half_example.c", "./half.so", "-Wl,-rpath,$ORIGIN", "-o", "example"]
    subprocess.run(command, cwd=tmp_path, check=True)

    def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["./example", *arguments], cwd=tmp_path, check=False, capture_output=True, text=True
        )

    counts = [printed("2", n).stdout.count("output0") for n in ("0", "1", "20")]
    assert counts == [0, 4, 8] and printed().stdout.count("output0") == 8
    assert printed("1", "21").stderr == f"half_plan: code {int(Status.WRONG_SHAPE)}\n"


def test_calls_of_one_workload_have_dimensions_of_their_own() -> None:
    """Their code is compiled once, for either."""
    n, m = dim("n", 0, 20), dim("m", 0, 20)
    made = Sized()
    inputs = [made.value("x", (n, 8)), made.value("w", (m, 8))]
    outputs = [made.combined(f"y{name}", name, name, 5) for name in inputs]
    network = made.network(inputs, outputs)
    assert len(network.workloads()) == 1
    feeds = {"x": np.ones((3, 8), np.int64), "w": np.ones((17, 8), np.int64)}
    got = sized.model(network).run(None, feeds)
    assert [a.shape for a in got] == [(3, 8), (17, 8)] and all((a == 4).all() for a in got)


def test_sizes_that_no_input_tells_are_refused() -> None:
    n, m = dim("n", 1, 9), dim("m", 1, 9)
    made = Sized()
    x = made.value("x", (n * m, 8))
    network = made.network([x], [made.combined("y", x, x, 2)])
    with pytest.raises(UsageError, match="do not tell the size of m"):
        sized.model(network)


# Metadata, which may come from strangers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["dims"][0].update(high=-1), "n cannot range over"),
        (lambda d: d["dims"].append(d["dims"][0]), "two dimensions have one name"),
        (lambda d: d["dims"].append({"name": "k", "low": 0, "high": 1, "step": 1}),
         "do not tell the size of k"),
        (lambda d: d["inputs"][0]["shape"].__setitem__(0, ["sum", [1, "q"]]), "'q' is not a part"),
        (lambda d: d["inputs"][0]["shape"].__setitem__(0, ["sum", [1, ["//", "n", 0]]]),
         "is not a part of an extent"),
        (lambda d: d["outputs"][0]["shape"].__setitem__(0, ["__import__", "os"]),
         "is not an extent"),
        (lambda d: d["outputs"][0]["shape"].__setitem__(0, ["sum", [-1, "n"]]),
         "cannot have the shape"),
        (lambda d: d["outputs"][0]["shape"].__setitem__(0, ["sum", *[[1, "n"]] * 300]),
         "too many parts"),
        (lambda d: d["outputs"][0].update(shape=[1] * 9), "cannot have the shape"),
        (lambda d: d["inputs"][0].update(bound=[[3, 1]]), "cannot have the bounds"),
        (lambda d: d["inputs"][0].update(bound=[]), "cannot have the bounds"),
        (lambda d: d["inputs"][0].update(bound=[[0, 1]] * 9), "cannot have the bounds"),
        (lambda d: d.update(interface=1), "another version of ansorpy: interface"),
    ],
)  # fmt: skip
def test_damaged_metadata_is_refused(
    chain: tuple[Path, Sized, Network], change: Callable[[Any], object], message: str
) -> None:
    data = json.loads(find_metadata(chain[0]))
    change(data)
    with pytest.raises(ForeignFile, match=message):
        read_metadata(json.dumps(data).encode(), "net.so")


def test_metadata_keeps_shapes(chain: tuple[Path, Sized, Network]) -> None:
    metadata = read_metadata(find_metadata(chain[0]), "net.so")
    assert [str(spec.dim()) for spec in metadata.dims] == ["n=0..37", "m=1..23"]
    ends = (*metadata.input_ports, *metadata.output_ports)
    assert [port.shape for port in ends] == [i.shape for i in (*chain[2].inputs, *chain[2].outputs)]
