"""Networks through the command line: trained on a dataset, then given to searches as files."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cli.main import main
from ansorpy.measure.program_dataset import write_dataset
from tests.cost.neural.test_library import NETWORKS
from tests.datasets import small_dataset
from tests.search.tasks import TARGET

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("small_population")]

MODEL = """
<ir_version: 7, opset_import: ["": 13]>
small (float[33, 24] x, float[24, 40] w) => (float[33, 40] y) { z = MatMul(x, w) y = Relu(z) }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network to compile, and a dataset."""
    folder = tmp_path_factory.mktemp("networks")
    onnx.save(onnx.parser.parse_model(MODEL), folder / "net.onnx")
    write_dataset(small_dataset(), folder / "d.npz")
    return folder


def _trained(name: str, folder: Path, path: Path) -> None:
    train = ["dataset", "train", str(folder / "d.npz"), "--target", TARGET.name]
    assert main([*train, "--cost-model", name, "-o", str(path)]) == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_a_trained_network_chooses_programs(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _trained(name, folder, tmp_path / "m.npz")
    assert f"the network {name}" in capsys.readouterr().out
    command = ["compile", str(folder / "net.onnx"), "-o", str(tmp_path / "net.so"),
               "--effort", "none", "--threads", "1", "--db", str(tmp_path / "net.db")]  # fmt: skip
    assert main([*command, "--cost-model", str(tmp_path / "m.npz")]) == 0
    assert (tmp_path / "net.so").exists()


def test_a_search_begins_with_a_trained_network(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _trained("tenset", folder, tmp_path / "m.npz")
    command = ["tune", str(folder / "net.onnx"), "--trials", "10", "--threads", "1"]
    command += ["--db", str(tmp_path / "net.db"), "--cost-model", str(tmp_path / "m.npz")]
    assert main(command) == 0
    assert "tuned 1 tasks" in capsys.readouterr().out
