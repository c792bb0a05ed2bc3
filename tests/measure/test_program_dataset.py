"""Datasets on disk: what is written comes back as programs, what is damaged is refused."""

from __future__ import annotations

import errno
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.errors import ForeignFile
from ansorpy.measure.program_dataset import ProgramDataset, read_dataset, write_dataset
from tests.datasets import small_dataset


def test_what_is_written_comes_back_as_the_same_programs(tmp_path: Path) -> None:
    written = small_dataset()
    write_dataset(written, tmp_path / "d.npz")
    read = read_dataset(tmp_path / "d.npz")
    assert len(read) == len(written) == 36
    assert list(tmp_path.iterdir()) == [tmp_path / "d.npz"]
    for before, after in zip(written.tasks.values(), read.tasks.values(), strict=True):
        assert (after.task.key, after.source) == (before.task.key, before.source)
        np.testing.assert_allclose(after.seconds, before.seconds, rtol=1e-6)
        for one, other in zip(before.sketches, after.sketches, strict=True):
            assert (one.table == other.table).all() and one.name == other.name
            scores, again = (
                AnalyticModel().predict(each.task, Programs(sketch.space(), sketch.table))
                for each, sketch in ((before, one), (after, other))
            )
            np.testing.assert_array_equal(scores, again)
            state = other.space().resolve(other.table[0])
            assert str(state.history) == str(one.space().resolve(one.table[0]).history)


def test_an_empty_one(tmp_path: Path) -> None:
    write_dataset(ProgramDataset(), tmp_path / "d.npz")
    assert len(read_dataset(tmp_path / "d.npz")) == 0


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Any, **_: object) -> None:
        file.write(b"the first half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        write_dataset(ProgramDataset(), tmp_path / "d.npz")
    assert not list(tmp_path.iterdir())


def test_a_definition_is_stored_once(tmp_path: Path) -> None:
    write_dataset(small_dataset(), tmp_path / "d.npz")
    header = json.loads(_arrays(tmp_path / "d.npz")["header"].tobytes())
    texts = [json.dumps(definition) for definition in header["definitions"]]
    assert len(texts) == len(set(texts)) < len(header["tasks"]) + len(header["sketches"])


def _arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def _with_header(arrays: dict[str, Any], **fields: object) -> dict[str, Any]:
    header = {**json.loads(arrays["header"].tobytes()), **fields}
    return {**arrays, "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    write_dataset(small_dataset(), tmp_path / "d.npz")
    good = _arrays(tmp_path / "d.npz")
    negative = np.where(np.arange(36) == 3, -1, good["seconds"]).astype(np.float32)
    pickled = np.array([{"rows": 1}], dtype=object)
    for arrays, message in (
        (_with_header(good, format="other"), "is not a dataset: format"),
        (_with_header(good, tasks=[]), "a task is missing"),
        (_with_header(good, definitions=[]), "a definition is missing"),
        ({**good, "rows": good["rows"][1:]}, "numbers of 36 programs, where"),
        ({**good, "rows": good["rows"].astype(np.float32)}, "rows has type float32"),
        ({**good, "seconds": negative}, "a time that is not positive"),
        ({**good, "rows": pickled}, "is not a dataset"),
        ({"header": good["header"]}, "is not a dataset"),
    ):
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(ForeignFile, match=message):
            read_dataset(tmp_path / "bad.npz")
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "lzma", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.npy", b"x" * 1000)
    packed = bytearray((tmp_path / "lzma").read_bytes())
    packed[60:70] = b"\xff" * 10
    (tmp_path / "lzma").write_bytes(packed)
    with zipfile.ZipFile(tmp_path / "vast", "w") as archive:
        shape = {"descr": "|u1", "fortran_order": False, "shape": (1 << 60,)}
        with archive.open("header.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, shape)
    nested = b"(" * 200
    with zipfile.ZipFile(tmp_path / "deep", "w") as archive:
        length = len(nested).to_bytes(2, "little")
        archive.writestr("header.npy", b"\x93NUMPY\x01\x00" + length + nested)
    for name, message in (
        ("text", "text is not a dataset"),
        ("lzma", "lzma is not a dataset"),
        ("vast", "vast is not a dataset"),
        ("deep", "deep is not a dataset"),
        ("absent", "cannot read .*absent: No"),
    ):
        with pytest.raises(ForeignFile, match=message):
            read_dataset(tmp_path / name)


def test_steps_that_lead_elsewhere_are_refused_when_their_programs_are_read(
    tmp_path: Path,
) -> None:
    write_dataset(small_dataset(), tmp_path / "d.npz")
    good = _arrays(tmp_path / "d.npz")
    sketches = json.loads(good["header"].tobytes())["sketches"]
    for steps, message in (("[]", "has 0 decisions"), ("[[1]]", "cannot be replayed")):
        changed = [{**sketches[0], "steps": steps}, *sketches[1:]]
        np.savez(tmp_path / "bad.npz", **_with_header(good, sketches=changed))
        [first, *_] = read_dataset(tmp_path / "bad.npz").tasks.values()
        with pytest.raises(ForeignFile, match=message):
            first.sketches[0].space()
