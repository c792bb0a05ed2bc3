"""Verifying and timing from Python: what the command line prints, as objects."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import ansorpy as ap
from ansorpy.api.evaluate import bench as benching
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.profiling import profiles_of, trace_of
from ansorpy.errors import UsageError, VerificationFailed
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.result import SizesComparison
from ansorpy.evaluation.bench.turns import Timing
from ansorpy.measure.gpu import devices
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.target import Target
from tests.evaluation.engines import free_units
from tests.frontend.models import graph_model, node
from tests.frontend.test_pinned import summed
from tests.graph.nets import Net


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net = Net(x=(3, 8))
    path = tmp_path_factory.mktemp("evaluate") / "net.onnx"
    onnx.save(net.model(net.op("Relu", net.op("MatMul", "x", net.normal(8, 5)))), path)
    return path


@pytest.fixture(scope="module")
def compiled(network: Path) -> CompiledModel:
    return ap.compile(network, effort="none", threads=1, db=network.parent / "t.db")


def test_a_model_in_memory_is_verified(network: Path, compiled: CompiledModel) -> None:
    found = ap.verify(compiled, network)
    assert found.ok and repr(found) == "<Verification net against onnxruntime: ok>"
    found.demand()
    assert ap.verify(compiled, network, against="reference").ok


def test_a_result_is_json_whatever_the_tolerance_is(network: Path, compiled: CompiledModel) -> None:
    found = ap.verify(compiled, network, tolerance=np.float64(1e-3))
    assert json.loads(json.dumps(found.to_dict()))["outputs"][0]["ok"] is True


@pytest.mark.parametrize("against", ["onnxruntime", "reference"])
def test_other_weights_are_found(
    network: Path, compiled: CompiledModel, tmp_path: Path, against: str
) -> None:
    model = onnx.load(network)
    [weights] = model.graph.initializer
    array = numpy_helper.to_array(weights).copy()
    array[0] += 0.5
    weights.CopyFrom(numpy_helper.from_array(array, weights.name))
    onnx.save(model, tmp_path / "net.onnx")
    wrong = ap.verify(compiled, tmp_path / "net.onnx", against=against)
    assert not wrong.ok
    said = f"1 of 1 outputs differ from {against}: .*\nhint: allow more with --tolerance"
    with pytest.raises(VerificationFailed, match=said):
        wrong.demand()


def test_an_engine_that_there_is_not_is_refused_at_once(network: Path) -> None:
    with pytest.raises(UsageError, match="^unknown engine 'tvm'\nhint: choose from onnxruntime"):
        ap.bench(network, against=["tvm"], db=network.parent / "t.db")


def test_a_library_is_verified(network: Path, compiled: CompiledModel, tmp_path: Path) -> None:
    library = compiled.export(tmp_path / "net.so")
    assert ap.verify(library, network, seed=3).ok
    assert ap.verify(ap.load(library), network, seed=3).ok
    with pytest.raises(UsageError, match="the comparison needs the network it was made from"):
        ap.verify(library)
    with pytest.raises(UsageError, match="the precision is fixed in the library(.|\n)*--precision"):
        ap.verify(library, network, precision="strict")


def test_a_model_is_verified_with_the_values_of_known_inputs(tmp_path: Path) -> None:
    path, known = tmp_path / "net.onnx", {"axes": [0]}
    onnx.save(summed(), path)
    made = ap.compile(path, constants=known, effort="none", threads=1, db=tmp_path / "t.db")
    assert ap.verify(made, path, constants=known).ok
    with pytest.raises(UsageError, match="has no input 'axes', as the network has"):
        ap.verify(made, path)


def test_a_model_and_its_library_are_verified_within_their_bounds(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    nodes, inputs = [node("Tile", ["x", "s"], ["y"])], {"x": (3,), "s": (1,)}
    onnx.save(graph_model(nodes, inputs, ["y"], types={"s": onnx.TensorProto.INT64}), path)
    made = ap.compile(path, bounds={"s": (2, 9)}, effort="none", threads=1, db=tmp_path / "t.db")
    library = made.export(tmp_path / "net.so")
    for model in (made, ap.load(library), library):
        assert ap.verify(model, path).ok
    with pytest.raises(UsageError, match="the sizes for which there is room are fixed"):
        ap.verify(library, path, bounds={"s": (2, 9)})


def test_another_network_is_refused(network: Path, compiled: CompiledModel) -> None:
    other = network.with_name("other.onnx")
    model = onnx.load(network)
    renamed = helper.make_tensor_value_info("unlike", 1, [3, 8])
    model.graph.input[0].CopyFrom(renamed)
    model.graph.node[0].input[0] = "unlike"
    onnx.save(model, other)
    with pytest.raises(UsageError, match="has no input named x"):
        ap.verify(compiled, other)
    with pytest.raises(UsageError, match="needs the network that net was made from"):
        ap.verify(compiled)
    with pytest.raises(UsageError, match="weights of a library are fixed\nhint: give the .onnx"):
        ap.verify(compiled, network, random_weights=1)
    with pytest.raises(UsageError, match="cannot verify against 'torch'"):
        ap.verify(compiled, network, against="torch")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tolerance": -1}, "tolerance must be a number of at least 0, got -1"),
        ({"tolerance": "0.1"}, "tolerance must be a number of at least 0, got '0.1'"),
        ({"tolerance": float("nan")}, "tolerance must be a number of at least 0, got nan"),
        ({"random_weights": -1}, "random_weights must be a whole number of at least 0, got -1"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"progress": True}, "progress cannot be True"),
    ],
)
def test_wrong_arguments_of_a_verification(
    network: Path, given: dict[str, Any], message: str
) -> None:  # fmt: skip
    with pytest.raises(UsageError, match=f"^{message}"):
        ap.verify(network, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"streams": 0}, "streams must be a whole number of at least 1, got 0"),
        ({"streams": "2"}, "streams must be a whole number of at least 1, got '2'"),
        ({"seed": True}, "seed must be a whole number of at least 0, got True"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"trace": 5}, "a trace is given by its path, not by int"),
        ({"progress": True}, "progress cannot be True"),
    ],
)
def test_wrong_arguments_of_a_timing(network: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        ap.bench(network, **given)


@pytest.mark.parametrize("shape", ["38", b"38", 3])
def test_what_is_no_shape_is_refused(network: Path, shape: Any) -> None:
    takers: tuple[Callable[..., Any], ...] = (ap.verify, ap.bench)
    for called in takers:
        with pytest.raises(UsageError, match=f"^{shape!r} is not the shape of x\nhint"):
            called(network, shapes={"x": shape})


def test_paths_are_paths(network: Path, compiled: CompiledModel) -> None:
    model: Any = onnx.load(network)
    takers: tuple[Callable[..., Any], ...] = (ap.verify, ap.bench)
    for called in takers:
        with pytest.raises(UsageError, match="^a model is given by its path, not by ModelProto"):
            called(model)
        with pytest.raises(UsageError, match="^a network is given by its path, not by ModelProto"):
            called(network, model)
    takers = (ap.load, ap.report, ap.replay, compiled.export)
    for called in takers:
        with pytest.raises(UsageError, match="is given by its path, not by NoneType\nhint: pass"):
            called(None)


def test_bench_exports_a_model_and_names_its_peers(
    network: Path, compiled: CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Contender] = []

    def compare(contenders: list[Contender], **options: object) -> dict[str, Timing]:
        asked.extend(contenders)
        assert np.isfinite(ap.load(asked[0].arguments["path"])(np.ones((3, 8), "f4"))).all()
        return {c.name: Timing("1", 0, [[2e-3, 1e-3]], [1.5e-3]) for c in contenders}

    monkeypatch.setattr(benching, "compare", compare)
    found = ap.bench(compiled, network, against=["onnxruntime"], threads=1)
    assert [c.name for c in asked] == ["ansorpy", "onnxruntime"]
    assert asked[1].arguments["path"] == str(network)
    assert repr(found) == "<Comparison net, 1 thread: ansorpy 1.500 ms, onnxruntime 1.500 ms>"
    assert "onnxruntime" in str(found) and "<table" in found._repr_html_()
    assert found.to_dict()["engines"]["ansorpy"]["median_ms"] == 1.5


def test_processes_of_engines_get_plain_numbers(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def compare(contenders: list[Contender], **options: object) -> dict[str, Timing]:
        sent.extend(json.dumps(dict(c.arguments)) for c in contenders)
        return {c.name: Timing("1", 0, [[1e-3]], [1e-3]) for c in contenders}

    monkeypatch.setattr(benching, "compare", compare)
    one: Any = np.int64(1)
    ap.bench(network, against=["reference"], threads=one, seed=one)
    assert len(sent) == 2 and all('"threads": 1' in text for text in sent)


def test_bench_keeps_tuners_from_the_gpus_of_its_target(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def compare(contenders: list[Contender], **options: object) -> dict[str, Timing]:
        asked.append(options["gpus"])
        return {c.name: Timing("1", 0, [[1e-3]], [1e-3]) for c in contenders}

    monkeypatch.setattr(benching, "compare", compare)
    monkeypatch.setattr(Target, "gpus", lambda self: (1,) if self.backend == "cuda" else ())
    monkeypatch.setattr(devices, "bus_place", lambda number: f"0000:0{number}")
    ap.bench(network, threads=1)
    ap.bench(network, target="sm_90")
    assert asked == [[], ["0000:01"]]


def test_the_version_of_a_library_is_no_part_of_a_comparison_s_title(
    compiled: CompiledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(contenders: list[Contender], **options: object) -> dict[str, Timing]:
        return {c.name: Timing("1", 0, [[1e-3]], [1e-3]) for c in contenders}

    monkeypatch.setattr(benching, "compare", compare)
    library = compiled.export(tmp_path / "net.so.1.2")
    assert ap.bench(library, threads=1).to_dict()["model"] == "net"


def test_the_seed_of_inputs_may_come_from_the_environment(
    network: Path, compiled: CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def compare(contenders: list[Contender], **options: object) -> dict[str, Timing]:
        asked.append(contenders[0].arguments["seed"])
        return {c.name: Timing("1", 0, [[1e-3]], [1e-3]) for c in contenders}

    monkeypatch.setattr(benching, "compare", compare)
    monkeypatch.setenv("ANSORPY_SEED", "7")
    ap.bench(compiled, network, threads=1)
    ap.bench(compiled, network, threads=1, seed=0)
    assert asked == [7, 0]
    monkeypatch.setenv("ANSORPY_SEED", "-1")
    with pytest.raises(UsageError, match="ANSORPY_SEED='-1' is not a seed"):
        ap.verify(compiled, network)


def test_the_report_shows_one_size(tmp_path: Path) -> None:
    several = SizesComparison("net", 2, [{"n": 1}, {"n": 2}], [{}, {}])
    with pytest.raises(UsageError, match="one size, but bench= compares 2"):
        ap.report(tmp_path / "page.html", bench=several)


def test_a_report_of_all_tasks_is_told_nothing_about_a_network(tmp_path: Path) -> None:
    about: tuple[dict[str, Any], ...] = ({"dims": {"n": 8}}, {"threads": 2}, {"target": "sm_90"})
    for given in about:
        with pytest.raises(UsageError, match=rf"\({next(iter(given))}= in Python\) is for a net"):
            ap.report(tmp_path / "page.html", **given)


def test_no_tuner_uses_the_cores_of_a_profile_or_a_trace(
    network: Path, compiled: CompiledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    free: list[list[str]] = []

    def looking(run: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*given: Any, **options: Any) -> Any:
            free.append(free_units())
            return run(*given, **options)

        return looked

    monkeypatch.setattr(CompiledModel, "profile", looking(CompiledModel.profile))
    monkeypatch.setattr(CompiledModel, "trace", looking(CompiledModel.trace))
    lookup = Lookup(network, threads=1, db=network.parent / "t.db")
    assert len(profiles_of(lookup, [{}], 0)) == 1
    assert trace_of(lookup, {}, 0).slices
    assert free == [[], []]
