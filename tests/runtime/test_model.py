from __future__ import annotations

import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.errors import CodegenError, UsageError
from ansorpy.graph.memory import ArenaPlan
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.runtime import executable
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.frontend.models import graph_model, node
from tests.runtime import programs

Rng = np.random.Generator


def test_run_computes_every_output(rng: Rng) -> None:
    model, layers = programs.model(rng)
    for threads in (1, 2, 3, None):
        x = programs.feed(rng)
        results = model.run(None, {"x": x}, threads=threads)
        for result, expected in zip(results, programs.expected(layers, x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_model_is_called_with_its_inputs(rng: Rng) -> None:
    model, layers = programs.model(rng)
    x = programs.feed(rng)
    for results in (model(x), model(x=x)):
        assert isinstance(results, tuple)
        for result, expected in zip(results, programs.expected(layers, x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(UsageError, match="takes 'x', got 2 arrays"):
        model(x, x)
    with pytest.raises(UsageError, match="input 'x' is given twice: in order, and by name"):
        model(x, x=x)
    with pytest.raises(UsageError, match="was not given input 'x'; its inputs are 'x'"):
        model()


def test_an_input_may_be_called_self(rng: Rng) -> None:
    source = graph_model([node("Neg", ["self"], ["y"])], {"self": (3, 5)}, ["y"])
    model = programs.plain_model(source)
    x = rng.standard_normal((3, 5), dtype=np.float32)
    np.testing.assert_array_equal(model(self=x), -x)


def test_outputs_by_name_and_into_given_arrays(rng: Rng) -> None:
    model, layers = programs.model(rng)
    x = programs.feed(rng)
    first, rows, _ = programs.expected(layers, x)
    mine = [np.full((programs.N,), np.nan, np.float32), np.empty((programs.N, programs.M), "f4")]
    results = model.run(["sum/rows", "first"], {"x": x}, outputs=mine)
    assert all(result is array for result, array in zip(results, mine, strict=True))
    np.testing.assert_allclose(mine[0], rows, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mine[1], first, rtol=1e-4, atol=1e-5)


def test_a_profile_takes_a_run_at_least(rng: Rng) -> None:
    model, _ = programs.model(rng)
    x = programs.feed(rng)
    assert len(model.profile({"x": x}, runs=1)) == len(model.profile({"x": x}, runs=2)) > 1
    with pytest.raises(UsageError, match="runs must be a whole number of at least 1, got 0"):
        model.profile({"x": x}, runs=0)


def test_an_input_that_is_not_contiguous_is_copied(rng: Rng) -> None:
    model, layers = programs.model(rng)
    x = np.asfortranarray(programs.feed(rng))
    [first] = model.run(["first"], {"x": x})
    np.testing.assert_allclose(first, programs.expected(layers, x)[0], rtol=1e-4, atol=1e-5)


def test_a_prepared_run_reads_its_inputs_in_place(rng: Rng) -> None:
    model, layers = programs.model(rng)
    x = programs.feed(rng)
    outputs = [np.zeros(port.shape, port.dtype) for port in model.get_outputs()]
    run = model.prepare({"x": x}, outputs)
    for _ in range(2):
        x[...] = programs.feed(rng)
        run()
        for result, wanted in zip(outputs, programs.expected(layers, x), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_what_a_prepared_run_would_have_to_copy_is_refused(rng: Rng) -> None:
    model, _ = programs.model(rng)
    x = programs.feed(rng)
    outputs = [np.zeros(port.shape, port.dtype) for port in model.get_outputs()]
    with pytest.raises(UsageError, match="input 'x' is not contiguous in memory"):
        model.prepare({"x": np.asfortranarray(x)}, outputs)
    with pytest.raises(UsageError, match="input 'x' must be a numpy array, got list"):
        model.prepare({"x": x.tolist()}, outputs)
    with pytest.raises(UsageError, match="takes 5x12 of float32, got 5x12 of float64"):
        model.prepare({"x": x.astype(np.float64)}, outputs)
    with pytest.raises(UsageError, match="was not given input 'x'"):
        model.prepare({}, outputs)


def test_ports_look_like_onnxruntimes(rng: Rng) -> None:
    model, _ = programs.model(rng)
    [x] = model.get_inputs()
    assert (x.name, x.shape, x.type) == ("x", (5, 12), "tensor(float)")
    assert x.dtype == np.dtype(np.float32)
    assert [o.name for o in model.get_outputs()] == ["first", "sum/rows", "plus one"]


def test_eight_python_threads_at_once(rng: Rng) -> None:
    model, layers = programs.model(rng)
    feeds = [programs.feed(rng) for _ in range(8)]

    def work(x: programs.Floats) -> None:
        expected = programs.expected(layers, x)
        for count in range(60):
            for result, wanted in zip(model.run(None, {"x": x}, threads=1 + count % 2), expected,
                                      strict=True):  # fmt: skip
                np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, feeds))


WIDE = 2048


def with_scratch() -> CompiledModel:
    """Rows plus themselves turned, all doubled; each thread keeps a row in memory of its own."""
    x = placeholder((3, WIDE), name="X")
    double = compute((3, WIDE), lambda i, j: x[i, j] * 2.0, name="D")
    out = compute((3, WIDE), lambda i, j: double[i, j] + double[i, WIDE - 1 - j], name="Y")
    dag = ComputeDAG([out], [x])

    def by_rows(state: State) -> State:
        return state.compute_at("D", "Y", "i").parallel("Y", ["i"])

    task = programs.task_of(dag, "with_scratch", by_rows)
    infos = [TensorInfo(name, (3, WIDE), DType.FLOAT32) for name in ("x", "y")]
    call = Call("only", dag, ("x",), {}, ("y",))
    values = {info.name: info for info in infos}
    net = Network((infos[0],), (infos[1],), values, (call,), ArenaPlan({}, 0))
    [workload] = net.workloads()
    return CompiledModel.of(net, {workload.key: task}, target=Target.host(), threads=1)


def test_runs_one_after_another_share_one_context_of_the_size_they_need(
    rng: Rng, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[weakref.ref[np.ndarray]] = []
    sizes: list[int] = []

    def noted(shape: tuple[int], dtype: type) -> np.ndarray:
        array = aligned_empty(shape, dtype)
        contexts.append(weakref.ref(array))
        sizes.append(array.nbytes)
        return array

    monkeypatch.setattr(executable, "aligned_empty", noted)
    model = with_scratch()
    x, made = rng.standard_normal((3, WIDE), dtype=np.float32), []
    for threads in (1, 40, 2, 41):
        [result] = model.run(None, {"x": x}, threads=threads)
        np.testing.assert_allclose(result, 2 * (x + x[:, ::-1]), rtol=1e-6)
        made.append(len(sizes))
        assert [ref() is not None for ref in contexts] == [False] * (len(sizes) - 1) + [True]
    assert made == [1, 2, 2, 3] and np.diff(sizes).tolist() == [39 * 4 * WIDE, 4 * WIDE]


def test_equal_constants_are_stored_once(rng: Rng) -> None:
    layer = programs.constants(rng)
    other = programs.constants(rng)
    sizes = []
    for layers in ([layer, layer], [layer, other]):
        net = programs.network(layers)
        model = CompiledModel.of(net, programs.tasks(net), target=Target.host(), threads=1)
        sizes.append(model.constant_bytes)
        x = programs.feed(rng)
        results = model.run(None, {"x": x})
        for result, expected in zip(results, programs.expected(layers, x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert sizes[1] == 2 * sizes[0]


@pytest.mark.parametrize(
    ("names", "feed", "message"),
    [
        (None, {"y": (5, 12)}, r"has no input 'y'; its inputs are 'x'"),
        (None, {}, r"was not given input 'x'"),
        (None, {"x": (5, 13)}, r"'x' takes 5x12 of float32, got 5x13 of float32"),
        (["nope"], {"x": (5, 12)}, r"no output 'nope'; its outputs are 'first', 'sum/rows'"),
        (["first", "first"], {"x": (5, 12)}, "requested twice"),
    ],
)
def test_wrong_names_and_shapes(
    rng: Rng, names: list[str] | None, feed: dict[str, tuple[int, ...]], message: str
) -> None:
    model, _ = programs.model(rng)
    arrays = {name: np.zeros(shape, np.float32) for name, shape in feed.items()}
    with pytest.raises(UsageError, match=message):
        model.run(names, arrays)


def test_wrong_types_outputs_and_threads(rng: Rng) -> None:
    model, _ = programs.model(rng)
    x = programs.feed(rng)
    with pytest.raises(UsageError, match="takes 5x12 of float32, got 5x12 of float64"):
        model.run(None, {"x": x.astype(np.float64)})
    with pytest.raises(UsageError, match=r"(?s)by name, not as ndarray.*pass {'x': array}"):
        model.run(None, x)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"(?s)named by a list.*pass \['first'\]"):
        model.run("first", {"x": x})
    with pytest.raises(UsageError, match="input 'x' cannot be used: .*inhomogeneous"):
        model.run(None, {"x": [[1.0], [1.0, 2.0]]})
    with pytest.raises(UsageError, match="takes 'x', got 2 arrays"):
        model(x, x)
    with pytest.raises(UsageError, match="neither copied nor pickled"):
        pickle.dumps(model)
    with pytest.raises(UsageError, match=r"1 outputs are requested \('first'\), but outputs= has"):
        model.run(["first"], {"x": x}, outputs=[])
    locked = np.zeros((5, 32), np.float32)
    locked.flags.writeable = False
    with pytest.raises(UsageError, match="'first' is read-only"):
        model.run(["first"], {"x": x}, outputs=[locked])
    with pytest.raises(
        UsageError, match="threads must be a whole number from 1 to 2147483647, got 0"
    ):
        model.run(None, {"x": x}, threads=0)
    shared = np.zeros((5, 32), np.float32)
    with pytest.raises(UsageError, match="'plus one' shares memory"):
        model.run(["first", "plus one"], {"x": x}, outputs=[shared, shared])


def test_a_model_for_another_machine_does_not_run_here(rng: Rng) -> None:
    net = programs.network([programs.constants(rng), programs.constants(rng)])
    arm = Target.parse("cortex-a76")
    model = CompiledModel.of(net, programs.tasks(net, arm), target=arm, threads=1)
    with pytest.raises(UsageError, match="compiled for another machine"):
        model.run(None, {"x": programs.feed(rng)})


def test_a_failing_task_stops_the_run(rng: Rng) -> None:
    """The entry returns the first code that is not 0, and nothing after it is called."""
    from dataclasses import replace

    from ansorpy.codegen.llvm.objects.build import compile_ir

    net = programs.network([programs.constants(rng), programs.constants(rng)])
    tasks = programs.tasks(net)
    key = net.calls[2].key
    built = tasks[key].built
    text = f'target triple = "{Target.host().triple}"\n' + (
        f"define i32 @{built.run.symbol}(ptr %a, ptr %w, i32 %t) {{ ret i32 77 }}"
    )
    broken = replace(built.run, code=compile_ir(text, Target.host()), digest="broken")
    tasks[key] = replace(tasks[key], built=replace(built, run=broken))
    model = CompiledModel.of(net, tasks, target=Target.host(), threads=1, name="demo")
    with pytest.raises(CodegenError, match="failed with code 77"):
        model.run(None, {"x": programs.feed(rng)})


def test_two_codes_of_one_name_are_refused(rng: Rng) -> None:
    net = programs.network([programs.constants(rng), programs.constants(rng)])
    tasks = programs.tasks(net)
    tasks[net.calls[2].key] = programs.task_of(programs.tail(), "dense_task")
    with pytest.raises(CodegenError, match="two different programs are both called dense_task"):
        CompiledModel.of(net, tasks, target=Target.host(), threads=1)
