"""Values of inputs as the command line states them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.constants import named_constant
from ansorpy.errors import AnsorpyError, ForeignFile


def test_values_are_json_or_files(tmp_path: Path) -> None:
    held = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "m.npy", held)
    assert named_constant("axes=[0,1]") == ("axes", [0, 1]) and named_constant("k=5") == ("k", 5)
    name, found = named_constant(f"mask=@{tmp_path / 'm.npy'}")
    assert name == "mask"
    np.testing.assert_array_equal(found, held)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("axes", "'axes' is not an input and its value"),
        ("=3", "'=3' is not an input and its value"),
        ("axes=[0,", r"'\[0,' is not a value of axes"),
        ("m=@missing.npy", "cannot read the value of m in missing.npy: No such file"),
        (f"m=@{__file__}", "it is no .npy file"),
    ],
)
def test_what_is_no_value(item: str, message: str) -> None:
    with pytest.raises(AnsorpyError, match=message):
        named_constant(item)


def test_values_nested_too_deeply_are_none() -> None:
    with pytest.raises(AnsorpyError, match="is not a value of axes"):
        named_constant(f"axes={'[' * 9999}")


@pytest.mark.parametrize("cut", [0, 30])
def test_a_file_of_several_arrays_holds_no_value(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, a=np.ones(3), b=np.ones(3))
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut])
    with pytest.raises(ForeignFile, match="cannot read the value of m in .*it is no .npy file"):
        named_constant(f"m=@{path}")


def test_a_file_whose_header_never_ends_holds_no_value(tmp_path: Path) -> None:
    path, said = tmp_path / "m.npy", b"(" * 200
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said)
    with pytest.raises(ForeignFile, match="cannot read the value of m in .*it is no .npy file"):
        named_constant(f"m=@{path}")
