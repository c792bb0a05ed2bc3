from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from benchmarks.dynamic.suite import FULL, TINY, shapes_at


@pytest.mark.parametrize("model", [*FULL.values(), *TINY.values()], ids=lambda m: m.name)
def test_sizes_are_random_and_a_third_are_primes(model) -> None:
    sizes = model.random_sizes(10, 0)
    assert len(set(sizes)) == 10 and sizes == tuple(sorted(sizes))
    assert model.low <= sizes[0] and sizes[-1] <= model.high
    assert sum(n > 1 and all(n % d for d in range(2, n)) for n in sizes) >= 4
    assert model.random_sizes(10, 0) == sizes != model.random_sizes(10, 1)


def test_more_sizes_than_there_are() -> None:
    assert TINY["decoder"].random_sizes(99, 0) == tuple(range(24))


def test_shapes_at_a_size(tmp_path: Path) -> None:
    path = TINY["decoder"].file(0, tmp_path)
    shapes = shapes_at(path, "past", 0)
    assert shapes["ids"] == (1, 1) and shapes["past_value_1"] == (1, 3, 0, 8)
    onnx.checker.check_model(path, full_check=True)
    first = path.stat().st_mtime_ns
    assert TINY["decoder"].file(0, tmp_path).stat().st_mtime_ns == first
