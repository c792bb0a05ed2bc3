"""The verbs on a small network, end to end: library, run, verify, bench, show, export, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ansorpy.api.evaluate import bench, verify
from ansorpy.api.evaluate.engine import Ours
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.cli.main import main
from ansorpy.cost.analytic.limits import Limits
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench import processes
from ansorpy.evaluation.bench.turns import Timing
from ansorpy.evaluation.profile import CallTime, profile_table
from ansorpy.evaluation.randomize import random_weights
from ansorpy.graph.alternatives import DOUBT
from ansorpy.measure.probe import calibrate
from ansorpy.measure.records.database import Database
from ansorpy.rates import Rates
from ansorpy.tasks.outcome import Ending
from tests.frontend.models import graph_model, node
from tests.graph.attentions import transformer
from tests.traces import assert_is_trace

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("short_turns")]


def _network() -> onnx.ModelProto:
    """Convolution, ReLU, pooling over all pixels, matrix product, softmax; an open batch."""
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    shapes = {"w": (11, 3, 3, 3), "b": (11,), "m": (11, 7)}
    nodes = [
        *(
            helper.make_node("ConstantOfShape", [f"{name}_shape"], [name])
            for name in shapes
        ),
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"], axis=1),
    ]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "small",
        [info("x", f32, ["batch", 3, 9, 9])],
        [info("p", f32, ["batch", 7])],
        [
            helper.make_tensor(f"{name}_shape", i64, [len(shape)], shape)
            for name, shape in shapes.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    return random_weights(model, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the network, and the library the first test of the module makes."""
    folder = tmp_path_factory.mktemp("verbs")
    onnx.save(_network(), folder / "net.onnx")
    arguments = [
        "compile", f"{folder / 'net.onnx'}", "-o", f"{folder / 'net.so'}", "--effort", "none",
        "--trials", "6", "--dim", "batch=1", "--db", f"{folder / 't.db'}", "--threads", "2",
    ]  # fmt: skip
    assert main(arguments) == 0
    return folder


def _product(rows: int | str, depth: int) -> onnx.ModelProto:
    """A network of one task."""
    weights = {"w": np.ones((depth, 5), np.float32)}
    return graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (rows, depth)}, ["y"], weights)


@pytest.fixture
def product(tmp_path: Path) -> str:
    """The file of a product of fixed sizes."""
    onnx.save(_product(3, 7), tmp_path / "one.onnx")
    return str(tmp_path / "one.onnx")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder: an empty one."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """``bench`` finds a millisecond for ours, without running anything."""
    timing = Timing("1", 0, [[1e-3]], [1e-3])
    monkeypatch.setattr(bench, "compare", lambda *given, **options: {"ansorpy": timing})


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This machine is taken for one with a clock of 1 MHz."""
    rates = Rates(1e6, 2.0, 2.5, 1.0, 60.0, 25.0, 1e11, 3e10, 5e10, 1e-6)
    monkeypatch.setenv("ANSORPY_CALIBRATE", "1")
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrate, "measure_rates", lambda: rates)


def test_compile_writes_library_and_header(folder: Path) -> None:
    assert (folder / "net.so").read_bytes()[:4] == b"\x7fELF"
    assert "_run" in (folder / "net.h").read_text()
    with Database(folder / "t.db") as database:
        assert sum(database.trials(t.key) for t in database.tasks()) == 6


def test_run_saves_outputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    np.save(folder / "x.npy", rng.standard_normal((1, 3, 9, 9), dtype=np.float32))
    library, saved = str(folder / "net.so"), str(folder / "out.npz")
    assert (
        main(["run", library, "--input", f"x={folder / 'x.npy'}", "--save", saved, "--json"]) == 0
    )
    [facts] = json.loads(capsys.readouterr().out)
    with np.load(saved) as outputs:
        p = outputs["p"]
    assert facts["name"] == "p" and facts["finite"]
    assert p.shape == (1, 7) and p.sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        (["--input", "z=random"], 2, "names no input"),
        (["--input", "x=missing.npy"], 6, "cannot read"),
    ],
)
def test_run_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], inputs: list[str], code: int, message: str
) -> None:
    assert main(["run", str(folder / "net.so"), *inputs]) == code
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("no_turns")
def test_a_library_keeps_its_sizes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library, known = str(folder / "net.so"), ["--model", str(folder / "net.onnx")]
    for same in (["--dim", "batch=1", *known], ["--shape", "x=1x3x9x9"]):
        assert main(["bench", library, *same]) == 0
    assert main(["run", library, "--shape", "x=1x3x9x9"]) == 0
    others = ["--dim batch=2", "--dim bath=1", "--shape x=2x3x9x9", "--shape y=1x3x9x9"]
    commands = [["verify", library, *known], ["bench", library, *known], ["run", library],
                ["verify", "--static", library]]  # fmt: skip
    for other, command in zip(others * 2, commands * 2, strict=True):
        assert main([*command, *other.split()]) == 2
        python = "dims" if other.startswith("--dim") else "shapes"
        said = f"for inputs x=1x3x9x9: {other} ({python}= in Python) cannot change that"
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("against", ["onnxruntime", "reference"])
def test_the_library_is_verified(
    folder: Path, capsys: pytest.CaptureFixture[str], against: str
) -> None:
    library, model = str(folder / "net.so"), str(folder / "net.onnx")
    # The library knows the size of the batch.
    command = ["verify", library, "--model", model, "--against", against]
    assert main([*command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] and {o["name"] for o in data["outputs"]} == {"p", "log(p)"}
    assert main([*command, "--tolerance", "0"]) == 4
    assert "differ from" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["net.so", "net.onnx"])
def test_the_programs_are_proved(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    sizes = ["--db", str(folder / "t.db"), "--dim", "batch=1", "--threads", "2"]
    command = ["verify", "--static", str(folder / name), *(sizes if name == "net.onnx" else ())]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert f"memory safety of {name}" in said
    assert re.search(r"memory safety of \d+ programs?: \d+ claims proved, 0 refuted, 0 und", said)
    assert main([*command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] and all(p["proved"] and not p["unfinished"] for p in data["programs"])


def test_the_network_is_verified_with_other_weights(
    folder: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["verify", str(folder / "net.onnx"), "--random-weights", "5", "--dim", "batch=1"]
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert not [*elsewhere.iterdir()]
    assert {o["name"] for o in data["outputs"]} == {"p", "z"}
    assert all(o["error"] < 2e-5 for o in data["outputs"])


def test_a_library_needs_its_network_for_comparisons(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in (["verify"], ["bench", "--against", "onnxruntime"]):
        assert main([*verb, str(folder / "net.so")]) == 2
        assert "--model" in capsys.readouterr().err


def test_bench_writes_the_documented_json(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = folder / "bench.json"
    arguments = [
        "bench", str(folder / "net.so"), "--model", str(folder / "net.onnx"), "--against",
        "onnxruntime", "--threads", "1", "-o", str(out),
    ]  # fmt: skip
    assert main(arguments) == 0
    data = json.loads(out.read_text())
    assert data["threads"] == 1 and list(data["engines"]) == ["ansorpy", "onnxruntime"]
    for engine in data["engines"].values():
        assert 0 < engine["min_ms"] <= engine["median_ms"] and engine["runs"] >= 4


@pytest.mark.usefixtures("no_turns")
def test_bench_prints_its_table_even_if_the_disk_is_full(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(folder / "net.so"), "-o", "/dev/full"]) == 6
    said = capsys.readouterr()
    assert "No space left" in said.err and "median ms" in said.out and "1.000" in said.out
    assert "one run of ansorpy" in said.out and "did not settle" not in said.out


@pytest.mark.usefixtures("engines_here")
def test_bench_profiles_the_calls_of_a_network(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(folder / "net.so"), "--profile"]) == 2
    assert "give the ONNX file" in capsys.readouterr().err
    out = folder / "profile.json"
    arguments = [
        "bench", str(folder / "net.onnx"), "--dim", "batch=1", "--db", str(folder / "t.db"),
        "--threads", "2", "--profile", "-o", str(out), "--trace", str(folder / "trace.json"),
    ]  # fmt: skip
    assert main(arguments) == 0
    assert capsys.readouterr().out.endswith(f"wrote {out}\nwrote {folder / 'trace.json'}\n")
    calls = json.loads(out.read_text())["calls"]
    assert len(calls) > 3 and "conv3x3" in calls[0]["name"]
    slices = assert_is_trace(json.loads((folder / "trace.json").read_text()))
    traced = {event["name"] for track in slices.values() for event in track}
    assert traced >= {call["name"] for call in calls}
    for call in calls:
        assert call["inside_s"] > 0 and call["alone_s"] > 0 and call["least_s"] >= 0
    inside_ms = sum(call["inside_s"] for call in calls) * 1e3
    assert all(call["bound"] in ("memory", "arithmetic") and not call["kernels"] for call in calls)
    assert all(call["least_s"] == max(call["memory_s"], call["compute_s"]) for call in calls)
    table = profile_table(
        [
            CallTime(c["name"], c["inside_s"], None, Limits(c["memory_s"], c["compute_s"]))
            for c in calls
        ]
    )
    assert table.rows[-1][:3] == ("all", str(len(calls)), f"{inside_ms * 1e3:.1f}")


@pytest.mark.usefixtures("no_turns", "slow_machine")
def test_a_profile_has_the_roofline_of_this_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "bench", str(folder / "net.onnx"), "--dim", "batch=1", "--db", str(folder / "t.db"),
        "--threads", "2", "--profile", "--json",
    ]  # fmt: skip
    assert main(arguments) == 0
    *_, result = map(json.loads, capsys.readouterr().out.splitlines())
    calls = result["calls"]
    assert result["event"] == "result" and max(call["least_s"] for call in calls) > 1e-7


def test_show_lists_tasks_and_prints_programs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["show", str(folder / "net.onnx"), "--dim", "batch=1", "--db", str(folder / "t.db"),
               "--threads", "2"]  # fmt: skip
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(t["trials"] for t in facts["tasks"]) == 6 and not facts["regions"]
    sizes = [
        facts["memory"][f"{part}_bytes"] for part in ("constant", "arena", "workspace", "port")
    ]
    assert sizes[0] >= 4 * (11 * 27 + 11 + 77) and sizes[3] == 4 * (3 * 81 + 7)
    assert facts["memory"]["peak_bytes"] == sum(sizes)
    assert main(command) == 0
    assert "iB at the peak of a run: constants " in capsys.readouterr().out
    assert main([*command, "--threads", "1"]) == 0
    assert "before compilation: constants " in capsys.readouterr().out
    expected = {"definition": "float32", "nest": "for ", "steps": "", "program": "kernel(",
                "llvm": "define", "asm": "ret"}  # fmt: skip
    for form, word in expected.items():
        assert main([*command, "--task", "0", "--as", form]) == 0
        assert word in capsys.readouterr().out


def test_explain_gives_reasons(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(folder / "net.onnx"), "--dim", "batch=1", "--task", "0"]) == 0
    text = capsys.readouterr().out
    assert "MultiLevelTiling" in text and "sketch 0:" in text and "skip:" not in text
    assert re.search(r"definition direct, takes at least [0-9.e-]+ us", text)
    assert main(["explain", str(folder / "net.onnx"), "--dim", "batch=1", "--all", "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert "skip: " in tasks[0]["text"] and len(tasks[0]["text"]) > 3 * len(text)


def test_explain_prints_what_stages_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", str(folder / "net.onnx"), "--dim", "batch=1", "--task", "0"]
    assert main([*command, "--relations"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^  \S+\[.*\] reads \S+\[.*\], again along \w+", told, re.MULTILINE)
    assert "definition direct" in told and "MultiLevelTiling" not in told


@pytest.mark.usefixtures("slow_machine")
def test_explain_knows_the_rates_of_this_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explain", str(folder / "net.onnx"), "--dim", "batch=1", "--task", "0"]
    assert main([*command, "--threads", "1"]) == 0
    [least_us, *_] = re.findall(r"takes at least ([0-9.e-]+) us", capsys.readouterr().out)
    assert float(least_us) > 10


def test_export_uses_the_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(folder / "net.onnx"), "-o", str(folder / "again.so"), "--dim",
                 "batch=1", "--db", str(folder / "t.db"), "--threads", "2"]  # fmt: skip
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "again.so" in out and f"records in {folder / 't.db'}" in out and "next: " in out
    assert main([*arguments, "--json"]) == 0
    *events, result = map(json.loads, capsys.readouterr().out.splitlines())
    assert events[0]["event"] == "plan" and result["event"] == "result"
    [version] = result["versions"]
    assert result["library"].endswith("again.so") and version["kernels_ms"] > 0
    assert version["memory"]["peak_bytes"] > 0 and version["proofs"]["refuted"] == 0
    with Database(folder / "t.db") as database:
        assert sum(database.trials(t.key) for t in database.tasks()) == 6


def test_too_little_memory_is_refused_with_what_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, db = str(tmp_path / "net.onnx"), str(tmp_path / "t.db")
    onnx.save(_product("batch", 400), network)
    shared = ["--dim", "batch=1", "--threads", "1", "--db", db]
    library = ["-o", str(tmp_path / "net.so")]
    with Database(db):
        pass  # to export from
    for verb in (["tune"], ["export", *library], ["compile", *library]):
        assert main([verb[0], network, *verb[1:], *shared, "--memory", "1KiB"]) == 2
        assert "allow 1 MiB or more with --memory" in capsys.readouterr().err
    assert main(["tune", network, *shared, "--effort", "none", "--memory", "1GiB"]) == 0
    [command] = [s for s in capsys.readouterr().out.splitlines() if s.startswith("next: ")]
    words = shlex.split(command.removeprefix("next: "))
    assert words[words.index("--memory") + 1] == "1GiB"
    assert main([*words[1:], *library]) == 0


def test_an_unknown_dimension_and_an_unknown_operator(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(folder / "net.onnx"), "--dim", "bach=1..4"]) == 2
    assert "it has batch" in capsys.readouterr().err
    model = _network()
    model.graph.node[1].op_type = "NoSuchOperator"
    onnx.save(model, folder / "odd.onnx")
    assert main(["compile", str(folder / "odd.onnx"), "--dim", "batch=1"]) == 3
    error = capsys.readouterr().err
    assert "NoSuchOperator" in error and "Traceback" not in error


def test_tune_takes_several_networks_and_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, models = str(tmp_path / "two.db"), [str(tmp_path / f"{n}.onnx") for n in ("net", "other")]
    for model, depth in zip(models, (7, 9), strict=True):
        onnx.save(_product("batch", depth), model)
    arguments = ["--trials", "4", "--threads", "1", "--dim", "batch=1", "--db", db,
                 "--weight", "other=2", "--objective", "latency_bounds",
                 "--latency-bound", "1us"]  # fmt: skip
    assert main(["tune", "-v", *models, *arguments]) == 0
    out, err = capsys.readouterr()
    assert "plan: about 4 trials" in err and "ended: all trials" in err and "share" in err
    commands = [
        line.removeprefix("next: ") for line in out.splitlines() if line.startswith("next: ")
    ]
    assert len(commands) == 2 and commands[0].endswith(f"--threads 1 --dim batch=1 --db {db}")
    assert main([*shlex.split(commands[0])[1:], "-o", str(tmp_path / "net.so")]) == 0
    with Database(db) as database:
        assert sum(database.trials(t.key) for t in database.tasks()) == 4
    assert main(["db", "replay", "--db", db]) == 0
    assert "same history, 4 trials" in capsys.readouterr().out


@pytest.mark.usefixtures("engines_here")
def test_ways_to_cut_a_network_are_measured_listed_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, db = str(tmp_path / "net.onnx"), str(tmp_path / "t.db")
    onnx.save(transformer(2), network)
    shared = ["--threads", "1", "--db", db]
    assert main(["tune", "-v", network, "--trials-per-task", "1", *shared]) == 0
    err = capsys.readouterr().err
    assert "(and 3 of other ways to partition it)" in err
    assert "ways to partition it" in err and "three kernels" in err and "*" in err
    assert main(["show", network, *shared, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    [region] = facts["regions"]
    one, three = region["ways"]
    assert [one["calls"], three["calls"]] == [1, 3]
    is_clear = three["seconds"] < DOUBT * one["seconds"]
    assert region["taken"] == ("three kernels" if is_clear else "one kernel")
    assert facts["memory"]["peak_bytes"] is not None
    out = tmp_path / "profile.json"
    assert main(["bench", network, *shared, "--profile", "-o", str(out)]) == 0
    names = [call["name"] for call in json.loads(out.read_text())["calls"]]
    assert sum("softmax" in name for name in names) == (region["taken"] == "three kernels")
    assert main(["db", "replay", "--db", db]) == 0
    assert "same history" in capsys.readouterr().out


def test_networks_of_one_file_name_are_told_apart(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [str(tmp_path / name / "net.onnx") for name in ("a", "b")]
    for model in models:
        Path(model).parent.mkdir()
        onnx.save(_network(), model)
    first = models[0].removesuffix(".onnx")
    arguments = ["--effort", "none", "--threads", "1", "--dim", "batch=1", "--objective",
                 "latency_bounds", "--latency-bound", f"{first}=1ms",
                 "--db", str(tmp_path / "t.db")]  # fmt: skip
    assert main(["tune", *models, *arguments]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "-o " in line]
    libraries = {line.partition("-o ")[2].split()[0] for line in lines}
    assert len(libraries) == 2 and all("/" not in library for library in libraries)
    assert main(["tune", models[0], models[0], *arguments]) == 2
    assert f"two networks are called {first}" in capsys.readouterr().err


def test_compile_ends_at_its_bound(
    product: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = str(tmp_path / "t.db")
    command = ["compile", product, "-o", str(tmp_path / "net.so"), "--db", db, "--threads", "1"]
    command += ["--trials", "40", "--latency-bound", "10s"]
    assert main(command) == 2
    assert "a latency bound is given, which the objective does not" in capsys.readouterr().err
    assert main([*command, "--objective", "latency_bounds"]) == 0
    assert f"ended: {Ending.OBJECTIVE.value}" in capsys.readouterr().err
    with Database(db) as database:
        assert sum(database.trials(t.key) for t in database.tasks()) < 40


def test_records_of_another_precision_are_found(
    product: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, db = product, tmp_path / "t.db"
    shared = ["--threads", "1", "--db", str(db)]

    def spent() -> int:
        with Database(db) as database:
            return sum(database.trials(task.key) for task in database.tasks())

    assert main(["tune", net, "--trials", "4", *shared, "--precision", "strict"]) == 0
    for verb in (["run", net], ["export", net, "-o", str(tmp_path / "net.so")]):
        assert main([*verb, *shared, "--precision", "strict"]) == 0
        assert "predicted" not in capsys.readouterr().err and spent() == 4
    assert main(["show", net, *shared, "--precision", "strict", "--json"]) == 0
    assert sum(task["trials"] for task in json.loads(capsys.readouterr().out)["tasks"]) == 4
    assert main(["run", net, *shared]) == 0
    assert "are predicted, not tuned" in capsys.readouterr().err


def test_bench_and_verify_pass_the_precision_on(
    folder: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def stop(given: Lookup | list[processes.Contender], *rest: object, **options: object) -> None:
        asked.append(given.arguments if isinstance(given, Lookup) else given[0].arguments)
        raise UsageError("enough")

    monkeypatch.setattr(bench, "compare", stop)
    monkeypatch.setattr(verify, "open_model", stop)
    for verb in ("bench", "verify"):
        assert main([verb, str(folder / "net.onnx"), "--precision", "strict"]) == 2
    contender, verified = asked
    assert verified == {"precision": "strict"}
    monkeypatch.setattr("ansorpy.api.evaluate.engine.open_model", stop)
    with pytest.raises(UsageError):
        Ours(**contender)
    assert asked[-1]["precision"] == "strict"


def test_explain_leaves_out_what_the_precision_forbids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    f32, info = TensorProto.FLOAT, helper.make_tensor_value_info
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    graph = helper.make_graph(
        nodes,
        "convolution",
        [info("x", f32, [1, 64, 14, 14])],
        [info("y", f32, [1, 64, 14, 14])],
        [helper.make_tensor("shape", TensorProto.INT64, [4], [64, 64, 3, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.save(random_weights(model, 0), tmp_path / "net.onnx")
    command = ["explain", str(tmp_path / "net.onnx"), "--task", "0"]
    assert main(command) == 0
    assert "winograd" in capsys.readouterr().out
    assert main([*command, "--precision", "strict"]) == 0
    assert "winograd" not in capsys.readouterr().out


def test_a_named_database_must_exist(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, db = str(folder / "net.onnx"), tmp_path / "absent.db"
    for verb in ("run", "bench", "verify", "export", "show"):
        assert main([verb, net, "--dim", "batch=1", "--db", str(db)]) == 6
        assert f"there is no database {db}" in capsys.readouterr().err
    assert not db.exists()


def test_predictions_are_said_until_a_search_has_tried_the_tasks(
    product: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("ANSORPY_DB", str(elsewhere / "own.db"))
    run = ["run", product, "--threads", "1"]

    def warning() -> str:
        assert main(run) == 0
        return capsys.readouterr().err.partition("\n")[0]

    said = warning()
    assert re.match(r"warning: the programs of (\d+) of \1 tasks are predicted, not tuned; ", said)
    assert main(["compile", *run[1:], "--effort", "none"]) == 0
    assert capsys.readouterr() and warning() == said
    command = shlex.split(said.partition("tune them, run: ")[2])[1:]
    assert main(["show", *run[1:], "--task", "0"]) == 0
    assert "of 1 of 1 tasks" in capsys.readouterr().err
    assert main([*command, "--trials-per-task", "4"]) == 0
    assert capsys.readouterr() and not warning()


def test_ctrl_c_saves_and_the_same_command_goes_on(product: str, tmp_path: Path) -> None:
    database = tmp_path / "c.db"
    command = [sys.executable, "-m", "ansorpy", "tune", "-v", product, "--trials", "40",
               "--strategy", "random", "--threads", "1", "--db", str(database)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("trials "):
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(timeout=60) == 130
    assert "finishing this batch" in rest and f"the trials so far are in {database}" in rest
    assert "ended: the user stopped it" in rest and "seconds" in rest
    with Database(database) as records:
        spent = sum(records.trials(t.key) for t in records.tasks())
    assert 0 < spent < 40
