from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile
from benchmarks.common.cells import markdown
from benchmarks.networks.report import means_table, networks_table
from benchmarks.networks.result import kept, path_of
from tests.benchmarks.networks.results import result


def test_ratio_and_share() -> None:
    r = result("resnet50", ansorpy=1.0, onnxruntime=3.0, openvino=2.0)
    assert (r.ours_ms, r.ratio, r.share) == (1.0, 2.0, 0.5)
    failed = result("resnet50", 2, {"ansorpy": "no"}, onnxruntime=3.0)
    assert (failed.ours_ms, failed.ratio, failed.share) == (None, None, None)
    assert result("resnet50", batch=16).label == "resnet50.b16"


def test_a_result_comes_back(tmp_path: Path) -> None:
    r = result("dcgan", ansorpy=1.0)
    path = path_of(tmp_path, r.label, 2, "1 min, 2 trials a task", 3)
    assert path.name == "dcgan.2-threads.1-min--2-trials-a-task.seed-3.json"
    assert kept(path, r.machine, ["ansorpy"], "") is None
    path.write_text(r.model_dump_json())
    assert kept(path, r.machine, ["ansorpy"], "") == r
    path.write_text("{}")
    with pytest.raises(ForeignFile, match="has no result of benchmarks.networks"):
        kept(path, r.machine, ["ansorpy"], "")


def test_what_is_not_whole_or_from_elsewhere_is_measured_again(tmp_path: Path) -> None:
    r = result("dcgan", 2, {"openvino": "no"}, ansorpy=1.0, onnxruntime=2.0)
    path = tmp_path / "r.json"
    path.write_text(r.model_dump_json())
    assert kept(path, r.machine, ["ansorpy", "onnxruntime"], "") == r
    assert kept(path, r.machine, ["ansorpy", "openvino"], "") is None
    assert kept(path, {**r.machine, "cores": 99}, ["ansorpy"], "") is None
    assert kept(path, r.machine, ["ansorpy"], "1+abc") is None


def test_tables_name_failures_and_group_the_means() -> None:
    results = [
        result("resnet50", ansorpy=1.0, onnxruntime=2.0),
        result("resnet50", batch=16, ansorpy=1.0, onnxruntime=8.0),
        result("dcgan", 2, {"ansorpy": "no"}, onnxruntime=8.0),
        result("dcgan", 1, ansorpy=1.0, onnxruntime=0.5),
    ]
    rows = networks_table(results).rows
    assert rows[2][:4] == ("dcgan", "2", "quick", "failed")
    means = means_table(results).rows
    assert ("light", "2", "1", "2.00", "2.00") in means
    assert ("others", "2", "1", "8.00", "8.00") in means
    assert ("others", "1", "1", "0.50", "0.50") in means
    assert ("all", "2", "2", "4.00", "2.00") in means
    table = means_table(results)
    assert markdown(table.heading, table.rows).splitlines()[1] == "| --- | --- | --- | --- | --- |"
