"""A shell completes verbs, and the names that options take."""

from __future__ import annotations

import pytest

from ansorpy.cli.completion import VALUES, completion_of
from ansorpy.cli.main import main


@pytest.mark.parametrize(
    ("argument", "beginning", "found"),
    [
        ("effort", "", ["none", "quick", "full"]),
        ("target", "x86", ["x86-64-v2", "x86-64-v3", "x86-64-v4"]),
        ("against", "o", ["onnxruntime", "openvino"]),
        ("strategy", "evo", ["evolution", "evolution_droplet"]),
        ("precision", "tf", ["tf32"]),
    ],
)
def test_names_that_begin_so(argument: str, beginning: str, found: list[str]) -> None:
    complete = completion_of(argument)
    assert complete is not None and complete(beginning) == found


def test_every_listed_argument_has_names_and_others_have_none() -> None:
    assert all([*names()] for names in VALUES.values())
    assert completion_of("seed") is None


def test_a_shell_asks_through_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_ANSORPY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "ansorpy ex")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["export", "explain"]
