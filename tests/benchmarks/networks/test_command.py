"""The command says which networks there are."""

from __future__ import annotations

import pytest

from benchmarks.networks.__main__ import main
from benchmarks.zoo.suite import ALL


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(ALL)
    assert main(["nothing", "--effort", "none"]) == 2
    assert "choose from" in capsys.readouterr().err
