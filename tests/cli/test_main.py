"""Exit codes and messages: one plain line, no traceback, the documented code."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ansorpy.api.parts import PARTS
from ansorpy.cli import main as module
from ansorpy.cli.main import main, repeat_list_option
from ansorpy.errors import ForeignFile


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in ("compile", "tune", "run", "bench", "verify", "show", "explain", "report",
                 "export", "db", "doctor"):  # fmt: skip
        assert f" {verb} " in text
    assert "Example: ansorpy compile" in text
    assert main(["doctor", "--environment"]) == 0
    assert "ANSORPY_NUM_THREADS" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [v.__name__ for v in module.VERBS])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"ansorpy {verb}" in capsys.readouterr().out


def test_every_verb_has_a_purpose_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(module.HELP) == [verb.__name__ for verb in module.VERBS]
    for verb, (_, example) in module.HELP.items():
        assert main([verb, "--help"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"Example: ansorpy {example}" in said and example.startswith(verb)
        assert all(word in said for word in example.split() if word.startswith("-"))


def test_help_names_no_type_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in module.HELP:
        assert main([verb, "--help"]) == 0
        said = capsys.readouterr().out
        assert not re.search(r"\{|<(path|bool|str|int|list.*)>|Python also", said), said


def test_without_arguments_there_is_the_help_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert "Usage: ansorpy" in said.out and not said.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "0.1.0\n"


def test_a_full_disk_is_one_plain_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "out.npz")

    monkeypatch.setattr(module, "VERBS", (full,))
    assert main(["full"]) == ForeignFile.exit_code
    error = capsys.readouterr().err
    assert error.startswith("error: out.npz: No space left on device\nhint: ")
    assert "hint: " in error and "Traceback" not in error


def test_too_little_memory_is_one_plain_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def large() -> None:
        raise MemoryError("Unable to allocate 32.0 PiB")

    monkeypatch.setattr(module, "VERBS", (large, large))
    assert main(["large"]) == 5
    error = capsys.readouterr().err
    assert error.startswith("error: there is not enough memory: Unable to allocate 32.0 PiB\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "fly"),
        (["compile"], "MODEL"),
        (["compile", "x.onnx", "--effort", "heroic"], "heroic"),
        (["compile", "x.onnx", "--trials", "0"], "--trials"),
        (["compile", "x.onnx", "--wings"], "--wings"),
        (["tune", "x.onnx", "--time-limit", "soon"], "'soon' is not a duration"),
        (["bench", "x.onnx", "--shape", "x:yes"], "'x:yes' is not an input's shape"),
        (["compile", "x.onnx", "--target", "pdp11"], "unknown target 'pdp11'"),
        (["compile", "x.onnx", "--target", "sm_61"], "sm_70 and later"),
        (["db", "runs", "--db", "t.db", "--run", "1"], "ansorpy db replay, with the same"),
        (["db", "t.db"], "'t.db' is not one of 'tasks', 'runs', 'replay', 'repair'"),
        (["db", "runs", "t.db"], "unexpected extra argument"),
        (["report", "--bench", "b.json"], "--bench is for a page"),
        (["report", "--dim", "n=8"], "--dim (dims= in Python) is for a network"),
        (["show", "x.onnx", "--as", "steps"], "--as is for one task of a network"),
        (["show", "x.onnx", "--limits", "--task", "3"], "--limits is for all calls"),
        (["show", "x.onnx", "--limits", "--as", "asm"], "--limits is for all calls"),
        (["dataset", "train", "d.npz", "--random", "3"], "dataset train does not use --random"),
        (["dataset", "train", "d.npz", "--dim", "n=3"], "dataset train does not use --dim"),
        (["dataset", "eval", "d.npz", "-o", "m.txt"], "dataset eval does not use --output"),
        (["dataset", "eval", "d.npz", "--programs", "8"], "dataset eval does not use --programs"),
        (["dataset", "record", "x.onnx", "--json"], "dataset record does not use --json"),
        (["verify", "n.so", "--static", "--against", "onnxruntime"], "does not use --against"),
        (["verify", "n.so", "--static", "--tolerance", "0"], "does not use --tolerance"),
        (["verify", "n.so", "--static", "--seed", "0"], "verify --static does not use --seed"),
        (["verify", "n.so", "--static", "--random-weights", "0"], "not use --random-weights"),
        (["dataset", "record", "x.onnx", "--plugin", "none.py"], "there is no plugin none.py"),
    ],
)
def test_wrong_use_is_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error
    assert "Traceback" not in error


def test_foreign_files_are_exit_6(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "net.onnx"
    text.write_text("this is no network")
    for arguments in (
        ["report", "--db", str(text)],
        ["db", "--db", str(tmp_path / "absent.db")],
        ["verify", str(text)],
        ["verify", str(tmp_path / "absent.onnx")],
    ):
        assert main(arguments) == 6
        assert capsys.readouterr().err.startswith("error: ")


def test_errors_of_ours_end_with_their_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doctor() -> None:
        raise ForeignFile("no such thing", hint="another")

    monkeypatch.setattr(module, "VERBS", (doctor, doctor))
    assert main(["doctor"]) == 6
    assert capsys.readouterr().err == "error: no such thing\nhint: another\n"


def test_unexpected_errors_are_one_line_unless_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doctor() -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(module, "VERBS", (doctor, doctor))
    assert main(["doctor"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("internal error: ZeroDivisionError: oops\n")
    assert "Traceback" not in error
    monkeypatch.setenv("ANSORPY_DEBUG", "1")
    assert main(["doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("ANSORPY_DEBUG", "on")
    assert main(["doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_what_caused_an_error_of_ours_is_shown_when_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doctor() -> None:
        raise ForeignFile("no such thing") from ZeroDivisionError("oops")

    monkeypatch.setattr(module, "VERBS", (doctor, doctor))
    assert main(["doctor"]) == 6
    assert capsys.readouterr().err == "error: no such thing\n"
    monkeypatch.setenv("ANSORPY_DEBUG", "1")
    assert main(["doctor"]) == 6
    error = capsys.readouterr().err
    assert "ZeroDivisionError: oops\n" in error and error.endswith("error: no such thing\n")


def test_a_full_disk_is_exit_6_when_debugging_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doctor() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "net.so")

    monkeypatch.setattr(module, "VERBS", (doctor, doctor))
    monkeypatch.setenv("ANSORPY_DEBUG", "1")
    assert main(["doctor"]) == 6
    error = capsys.readouterr().err
    assert "Traceback" in error and "error: net.so: No space left on device\nhint: " in error


def test_interrupts_are_exit_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doctor() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "VERBS", (doctor, doctor))
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_engine_lists_are_spelled_out() -> None:
    given = ["bench", "n.so", "--against", "onnxruntime", "openvino", "--threads", "1"]
    assert repeat_list_option(given) == [
        "bench", "n.so", "--against", "onnxruntime", "--against", "openvino", "--threads", "1",
    ]  # fmt: skip
    given = ["bench", "--against", "onnxruntime", "openvino", "n.onnx"]
    assert repeat_list_option(given)[-3:] == ["--against", "openvino", "n.onnx"]
    assert repeat_list_option(["run", "openvino"]) == ["run", "openvino"]


def test_doctor_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    names = {finding["name"] for finding in data["findings"]}
    assert data["ok"] and {"cpu", "libgomp", "linker", "llvm", "cuda", "nvrtc"} <= names


def test_python_dash_m_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ansorpy", "nonsense"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_doctor_lists_the_parts_of_a_search_and_of_a_plugin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(
        "import ansorpy as ap\n"
        "@ap.PARTS['selector'].register('own')\n"
        "class Own:\n"
        '    """Takes what comes."""\n'
        "    def pick(self, pool, n, rng): return list(pool.best[:n])\n"
    )
    try:
        assert main(["doctor", "--parts", "--plugin", str(plugin)]) == 0
    finally:
        PARTS["selector"].remove("own")
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["--selector", "own", "Takes what comes."] in lines
    assert {"grid", "droplet"} <= {line[1] for line in lines if line[0] == "--strategy"}
    assert main(["doctor", "--plugin", str(plugin)]) == 2
    assert "--plugin is for the list of parts" in capsys.readouterr().err
    assert main(["doctor", "--parts", "--environment"]) == 2
    assert "--parts and --environment are two lists" in capsys.readouterr().err


def test_wrong_parts_are_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "net.onnx", "--strategy", "best"]) == 2
    assert 'unknown strategy "best"' in capsys.readouterr().err
    assert main(["tune", "net.onnx", "--objective", "best"]) == 2
    assert 'unknown objective "best"' in capsys.readouterr().err
    assert main(["tune", "net.onnx", "--plugin", "absent.py"]) == 2
    assert "there is no plugin absent.py" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["tune", "verify", "bench", "dataset eval"])
def test_the_seed_may_come_from_the_environment(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANSORPY_SEED", "-1")
    assert main([*words.split(), "absent"]) == 2
    assert "ANSORPY_SEED='-1' is not a seed, 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "first", "second"),
    [
        ("--dim", "n=8", "n=1..8"),
        ("--shape", "x=1x3", "x=2x3"),
        ("--const", "k=5", "k=[5]"),
        ("--bound", "n=3", "n=4"),
        ("--alias", "y=a", "y=b"),
    ],
)
def test_a_name_has_one_value(
    option: str, first: str, second: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["show", "absent.onnx", "--threads", "1", option, first, option]
    assert main([*command, second]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {option} {first} and {option} {second} contradict each other")
    assert said.endswith("hint: give one of them\n")
    assert main([*command, first]) == 6
