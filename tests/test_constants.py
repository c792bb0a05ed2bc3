"""Values of inputs as the command line states them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.constants import constants_of
from ansorpy.errors import AnsorpyError


def test_values_are_json_or_files(tmp_path: Path) -> None:
    held = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "m.npy", held)
    found = constants_of(["axes=[0,1]", "k=5", f"mask=@{tmp_path / 'm.npy'}"])
    assert found["axes"] == [0, 1] and found["k"] == 5
    np.testing.assert_array_equal(found["mask"], held)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("axes", "'axes' is not an input and its value"),
        ("=3", "'=3' is not an input and its value"),
        ("axes=[0,", r"'\[0,' is not a value of axes"),
        ("m=@missing.npy", "cannot read the value of m in missing.npy: No such file"),
        (f"m=@{__file__}", "it holds no array of numpy"),
    ],
)
def test_what_is_no_value(item: str, message: str) -> None:
    with pytest.raises(AnsorpyError, match=message):
        constants_of([item])
