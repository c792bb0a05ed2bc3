"""What Linux perf reads of functions in memory; tests of runs read it, too."""

from __future__ import annotations

import locale

import pytest

from ansorpy.codegen.llvm.objects.build import build
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.perf_map import map_path
from ansorpy.target import Target
from tests.codegen.programs import at, buffer, nest, program, put


def test_labels_of_any_script_take_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSORPY_PERF", "1")
    x, y = buffer("x", 7), buffer("y", 7)
    source = program(nest("s7", lambda i: put(y, (i,), at(x, i))), [x], [y])
    code = build(source, Target.host(), symbol="copied")
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        with load([code], labels={"copied": "größe\n 列\r\ud800"}):
            lines = map_path().read_text(encoding="utf-8").split("\n")
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
        map_path().unlink(missing_ok=True)
    names = [line.split(" ", 2)[2] for line in lines if line]
    assert "größe 列 ?" in names
    assert all(name.split(".")[0] == "größe 列 ?" for name in names)
