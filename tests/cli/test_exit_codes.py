"""Exit codes of commands, as the package's and the benchmarks' command lines return them."""

import gc
import os
import sys
from functools import partial
from io import StringIO
from pathlib import Path

import pytest

from ansorpy.cli import main as main_module
from ansorpy.cli.exit_codes import exit_code
from ansorpy.cli.main import main
from ansorpy.errors import ForeignFile
from benchmarks.spaces.__main__ import main as list_spaces


def test_the_code_and_the_text_of_an_expected_error(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        raise ForeignFile("this is no database", hint="name another file")

    assert exit_code(command) == 6
    assert capsys.readouterr().err == "error: this is no database\nhint: name another file\n"


def test_other_errors_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code(lambda: 1 // 0)


@pytest.mark.parametrize("command", [partial(main, ["--version"]), partial(list_spaces, [])])
def test_a_command_whose_reader_is_gone_ends_without_a_message(
    command: partial[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.close(read)
    said = StringIO()
    with os.fdopen(write, "w") as gone, monkeypatch.context() as streams:
        streams.setattr(sys, "stdout", gone)
        streams.setattr(sys, "stderr", said)
        assert command() == 1
    assert not said.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", None])
def test_a_command_prints_what_its_output_can_show(
    encoding: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without an encoding, the output is closed, and messages go to no file."""
    said = tmp_path / "out.txt"
    monkeypatch.setattr(gc, "set_threshold", lambda number: None)
    monkeypatch.setattr(sys, "argv", ["ansorpy", "shown"])
    monkeypatch.setattr(main_module, "VERBS", (shown, shown))
    with said.open("w", encoding=encoding) as out, monkeypatch.context() as streams:
        streams.setattr(sys, "stderr", StringIO() if encoding is None else out)
        streams.setattr(sys, "stdout", None if encoding is None else out)
        assert main() == 0
        sys.stdout.close()
    assert said.read_text() == ("" if encoding is None else "12 \\u03bcs\\u2588\n")


def shown() -> None:
    """A verb."""
    print("12 μs█")
