"""A library that is not as it was written is refused: flipped, cut, lengthened or edited."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import ForeignFile
from ansorpy.runtime.library import checksum
from ansorpy.runtime.model import Model, load
from tests.frontend.models import graph_model, node

X = np.random.default_rng(0).standard_normal((3, 40), dtype=np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product with a constant of 40 x 30."""
    folder = tmp_path_factory.mktemp("checksum")
    weight = np.random.default_rng(1).standard_normal((40, 30), dtype=np.float32)
    model = graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (3, 40)}, ["y"], {"w": weight})
    with pytest.MonkeyPatch.context() as patch:
        # Its constants count as large.
        patch.setattr(checksum, "LARGE_BYTES", 4096)
        compiled = ap.compile(model, effort="none", threads=1, db=folder / "t.db")
        return compiled.export(folder / "net.so")


def used(path: Path) -> Model:
    model = load(path)
    model.run(None, {"x": X})
    return model


def changed(folder: Path, data: bytes) -> Path:
    """A file of its own: one that is loaded must not be overwritten."""
    path = folder / f"net{len([*folder.iterdir()])}.so"
    path.write_bytes(data)
    return path


def test_a_copy_runs(library: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(library, tmp_path / "other.so"))
    np.testing.assert_array_equal(
        used(copy).run(None, {"x": X})[0], used(library).run(None, {"x": X})[0]
    )


def test_a_flipped_bit_is_found_wherever_it_is(
    library: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    data = library.read_bytes()
    for at in rng.integers(len(data), size=60):
        wrong = bytearray(data)
        wrong[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(ForeignFile):
            used(changed(tmp_path, bytes(wrong)))


def test_large_constants_are_checked_by_the_first_run(library: Path, tmp_path: Path) -> None:
    data = bytearray(library.read_bytes())
    weight = np.random.default_rng(1).standard_normal((40, 30), dtype=np.float32)
    at = data.find(weight[0, :2].tobytes())
    assert at > 0
    data[at] ^= 1
    model = load(changed(tmp_path, bytes(data)))
    for _ in range(2):
        with pytest.raises(ForeignFile, match="was changed after it was made"):
            model.run(None, {"x": X})


@pytest.mark.parametrize("kept", [0.5, 0.999])
def test_a_library_that_was_cut_is_refused(library: Path, tmp_path: Path, kept: float) -> None:
    data = library.read_bytes()
    with pytest.raises(ForeignFile, match=r"is incomplete|is not a shared library|lacks|not a lib"):
        load(changed(tmp_path, data[: int(len(data) * kept)]))


def test_one_byte_more_or_edited_metadata_is_refused(library: Path, tmp_path: Path) -> None:
    data = library.read_bytes()
    edited = data.replace(b'"threads":1', b'"threads":8')
    assert edited != data
    for wrong in (data + b"\0", edited):
        with pytest.raises(ForeignFile, match="was changed after it was made"):
            load(changed(tmp_path, wrong))


def test_the_file_that_was_loaded_is_checked(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the process stands, and even if the file is replaced before the first run."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(library, "net.so")
    model = load("net.so")
    (tmp_path / "other").write_text("no library")
    (tmp_path / "other").replace("net.so")
    monkeypatch.chdir("/")
    assert model.run(None, {"x": X})[0].shape == (3, 30)
