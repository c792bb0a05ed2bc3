"""Results of other verbs are validated when they are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile
from ansorpy.evaluation.page.results import read_bench, read_verified
from tests.evaluation.page.test_facts import BENCH, VERIFIED


def test_files_and_values_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(BENCH))
    assert read_bench(path) == read_bench(BENCH)
    path.write_text(json.dumps(VERIFIED))
    assert read_verified(path) == read_verified(VERIFIED)


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with pytest.raises(ForeignFile, match=r"cannot read .*r.json: No such file"):
        read_bench(path)
    path.write_text("{")
    with pytest.raises(ForeignFile, match=r"r.json is not a result of verify: the text: Invalid"):
        read_verified(path)
    sizes = {**BENCH, "engines": None}
    with pytest.raises(ForeignFile, match="is not a result of bench at one size: engines: "):
        read_bench(sizes)
