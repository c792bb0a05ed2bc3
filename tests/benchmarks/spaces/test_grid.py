"""Grids on disk: what is written comes back, what is damaged is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorpy.errors import ForeignFile
from ansorpy.measure.result import TrialKind
from benchmarks.spaces.grid import PENDING, Grid, read_grid, write_grid
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import matmul


@cache
def small() -> Grid:
    return grid_of(matmul(24, 40, 36))


def test_written_and_read_back(tmp_path: Path) -> None:
    grid = small()
    write_grid(grid, tmp_path / "a.npz")
    read = read_grid(tmp_path / "a.npz")
    assert read.header == grid.header
    assert read.task.key == grid.task.key
    assert read.state.history == grid.state.history
    assert (read.rows == grid.rows).all() and (read.kinds == grid.kinds).all()
    np.testing.assert_allclose(read.times, grid.times, rtol=1e-6)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.npz"]


def test_times_are_at_one_speed_of_the_clock() -> None:
    grid = small()
    timed = np.flatnonzero(np.isfinite(grid.seconds))
    drifted = timed[: len(timed) // 3]
    seconds, clock = grid.seconds.copy(), grid.clock.copy()
    seconds[drifted] *= 1.5
    clock[drifted] *= 1.5
    again = replace(grid, seconds=seconds, clock=clock)
    np.testing.assert_allclose(again.times, grid.times)


def test_points_that_were_timed_again_have_those_times() -> None:
    grid = small()
    first = int(grid.again_rows[0])
    samples = grid.again.copy()
    samples[0] = np.linspace(1.0, 3.0, 10) * grid.seconds[first]
    assert replace(grid, again=samples).times[first] == pytest.approx(2.0 * grid.seconds[first])


def test_complete_is_all_measured_and_the_fastest_timed_again() -> None:
    grid = small()
    assert grid.is_complete
    kinds = grid.kinds.copy()
    kinds[3] = PENDING
    unmeasured = replace(grid, kinds=kinds)
    assert not unmeasured.is_complete
    assert unmeasured.kind(3) is TrialKind.NOT_RECORDED
    fewer = replace(
        grid, again_rows=grid.again_rows[1:], again=grid.again[1:],
        again_clock=grid.again_clock[1:],
    )  # fmt: skip
    assert not fewer.is_complete


def _damaged(path: Path, **changed: Any) -> Path:
    write_grid(small(), path)
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive}
    np.savez(path, **(arrays | changed))
    return path


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"header": np.frombuffer(b"{}", np.uint8)}, "target: Field required"),
        ({"rows": np.zeros((3, 2))}, "rows has type float64"),
        ({"kinds": np.zeros(3, np.uint8)}, "points"),
        ({"kinds": np.full(1000, 99, np.uint8)}, "points"),
        ({"again_rows": np.array([-1], np.int32)}, "timed again"),
        ({"rows": np.array([{}], dtype=object)}, "is not a recorded grid"),
    ],
)
def test_damage_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ForeignFile, match=message):
        read_grid(_damaged(tmp_path / "a.npz", **changed))


def test_rows_are_different_and_all_of_the_product(tmp_path: Path) -> None:
    rows = small().rows.astype(np.int32)
    rows[1] = rows[0]
    with pytest.raises(ForeignFile, match="a point occurs twice"):
        read_grid(_damaged(tmp_path / "a.npz", rows=rows))
    header = small().header.model_copy(update={"refused": 0})
    text = np.frombuffer(header.model_dump_json().encode(), np.uint8)
    with pytest.raises(ForeignFile, match="and 0 refused ones, but"):
        read_grid(_damaged(tmp_path / "a.npz", header=text))
    seconds = np.where(np.arange(len(rows)) == 1, -1.0, small().seconds).astype(np.float32)
    with pytest.raises(ForeignFile, match="not positive"):
        read_grid(_damaged(tmp_path / "a.npz", seconds=seconds))
    first = int(np.argmin(small().times))
    seconds = np.where(np.arange(len(rows)) == first, np.nan, small().seconds).astype(np.float32)
    with pytest.raises(ForeignFile, match="a correct point without a time"):
        read_grid(_damaged(tmp_path / "a.npz", seconds=seconds))


def test_a_changed_byte_is_refused_or_changes_nothing(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    path, refused = tmp_path / "a.npz", 0
    write_grid(small(), path)
    written = path.read_bytes()
    for at in rng.integers(len(written), size=200):
        path.write_bytes(written[:at] + bytes([written[at] ^ 0x55]) + written[at + 1 :])
        try:
            read = read_grid(path)
        except ForeignFile:
            refused += 1
        else:
            assert read.header == small().header and (read.rows == small().rows).all()
    assert refused > 100


def _array_alone() -> bytes:
    file = BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"text", _array_alone()])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ForeignFile, match="is not a recorded grid"):
        read_grid(tmp_path / "a.npz")
    with pytest.raises(ForeignFile, match="is not a recorded grid"):
        read_grid(tmp_path / "missing.npz")


def test_a_schedule_that_opens_other_decisions_is_told() -> None:
    grid = small()
    header = grid.header.model_copy(update={"cut": {"C.x": ((1,),)}})
    with pytest.raises(ForeignFile, match="was recorded over C.x; its schedule now has the open"):
        _ = replace(grid, header=header).state
