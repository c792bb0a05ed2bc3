"""Tables as text, outputs summed up, the machine examined."""

from __future__ import annotations

import io
import json
import re
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from ansorpy.errors import MissingDependency
from ansorpy.evaluation.doctor import Examination, Finding, examine
from ansorpy.evaluation.outputs import outputs_json, outputs_table
from ansorpy.evaluation.tables import Table, show


def test_text_aligns_words_left_and_numbers_right() -> None:
    table = Table("title", ("name", "ms"), (("a", "1.5"), ("longer", "10.25")), frozenset({"ms"}))
    assert table.text().splitlines() == ["title", "name       ms", "a         1.5", "longer  10.25"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(table: Table, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of *table* on a terminal of so many *columns*, without styles."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    show(table, terminal)
    return [re.sub(r"\x1b\[\d*m", "", line) for line in terminal.getvalue().splitlines()]


def test_show_draws_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    table, plain = Table("t", ("a",), (("x[y]",),)), io.StringIO()
    show(table, plain)
    assert plain.getvalue() == "t\na\nx[y]\n"
    assert drawn(table, 80, monkeypatch) == ["t", "a", "────", "x[y]"]


def test_a_long_name_has_a_line_of_its_own() -> None:
    name = "decoder.layers." + "x" * 50
    rows = (("0", name, "1.5"), ("1", "y", "2"))
    table = Table("", ("#", "output", "ms"), rows, frozenset({"#", "ms"}))
    assert table.text().splitlines() == [
        "#  output   ms",
        f"0  {name}",
        "           1.5",
        "1  y         2",
    ]


def test_a_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        ("conv_of_a_name_that_is_long", "1234.5", "is limited by memory, they say"),
        ("a", "2", ""),
    )
    table = Table("", ("kernel", "us at least", "why"), rows, frozenset({"us at least"}))
    assert drawn(table, 80, monkeypatch)[0].startswith(
        "kernel                       us at least  why"
    )
    assert [line.rstrip() for line in drawn(table, 60, monkeypatch)] == [
        "                              us at",
        "kernel                        least  why",
        "─" * 60,
        "conv_of_a_name_that_is_long  1234.5  is limited by memory,",
        "                                     they say",
        "a                                 2",
    ]
    assert [line.rstrip() for line in drawn(table, 40, monkeypatch)][3:] == [
        "conv_of_a_name_that_is_long",
        "        1234.5  is limited by",
        "                memory, they say",
        "a            2",
    ]


def test_outputs_are_summed_up() -> None:
    outputs = {
        "y": np.array([[1.0, 3.0]], np.float32),
        "n": np.array([np.nan, 1.0], np.float32),
        "i": np.array(7),
        "e": np.zeros((0, 2), np.float32),
    }
    facts = {f["name"]: f for f in outputs_json(outputs)}
    assert facts["y"] == {
        "name": "y", "shape": [1, 2], "dtype": "float32", "min": 1.0, "max": 3.0, "mean": 2.0,
        "finite": True,
    }  # fmt: skip
    assert facts["n"]["finite"] is False and facts["n"]["max"] is None
    assert facts["e"]["mean"] is None
    json.dumps(outputs_json(outputs), allow_nan=False)
    assert "scalar" in outputs_table(outputs).text() and "NO" in outputs_table(outputs).text()


def test_this_machine_is_examined() -> None:
    examination = examine()
    names = [f.name for f in examination.findings]
    assert len(set(names)) == len(names)
    json.dumps(examination.to_dict())
    examination.demand()


def test_what_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    def unknown(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("ctypes.CDLL", no_library)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("importlib.metadata.version", unknown)
    found = {f.name: f for f in examine().findings}
    assert not found["libgomp"].ok and "libgomp1" in found["libgomp"].advice
    assert not found["linker"].ok and not found["linker"].needed
    assert "ansorpy[export]" in found["linker"].advice
    with pytest.raises(MissingDependency, match="libgomp") as caught:
        examine().demand()
    assert "apt install" in str(caught.value.hint)


def test_only_needed_things_decide() -> None:
    absent = Finding("gpu", False, False, "no driver", "buy one")
    assert Examination((absent,)).ok
    assert not Examination((absent, Finding("cpu", False, True, "none"))).ok
    assert "absent" in Examination((absent,)).table().text()
