"""Inputs from files and from seeds; wrong names, shapes, types and files are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ansorpy.api.evaluate.databases import open_database
from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.models import onnx_beside
from ansorpy.arrays import Array
from ansorpy.cli.files import emitted_path, feeds, save_arrays
from ansorpy.cli.main import main
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.extents import dim
from ansorpy.runtime.library.forms import Form
from ansorpy.runtime.ports import Port
from ansorpy.size_ranges import SizeRange

X = Port("x", (2, 3), np.dtype(np.float32))
N = Port("n:0", (), np.dtype(np.int64))


def test_arrays_from_files(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "b.npz", x=array + 1)
    assert np.array_equal(feeds([X], [f"x={tmp_path / 'a.npy'}"])["x"], array)
    assert np.array_equal(feeds([X], [f"x={tmp_path / 'b.npz'}"])["x"], array + 1)


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_types_that_files_of_numpy_do_not_name(tmp_path: Path, kind: type) -> None:
    array: Array = np.arange(6).reshape(2, 3).astype(kind)
    np.save(tmp_path / "a.npy", array)
    port = Port("x", (2, 3), np.dtype(kind))
    found = feeds([port], [f"x={tmp_path / 'a.npy'}"])["x"]
    assert found.dtype == port.dtype and np.array_equal(found, array)
    with pytest.raises(UsageError, match="'x' takes 2x3 of float32"):
        feeds([X], [f"x={tmp_path / 'a.npy'}"])


def test_random_inputs_have_the_sizes_that_are_given_or_those_of_files(tmp_path: Path) -> None:
    rows = dim("rows", 1, 9)
    x, y = Port("x", (rows, 3), X.dtype), Port("y", (rows * 2,), X.dtype)
    found = feeds([x, y], ["y=random:2"], {"rows": 4})
    assert found["x"].shape == (4, 3) and found["y"].shape == (8,)
    np.save(tmp_path / "x.npy", np.ones((5, 3), np.float32))
    assert feeds([x, y], [f"x={tmp_path / 'x.npy'}"])["y"].shape == (10,)
    ranges = {"rows": SizeRange(1, 9)}
    assert feeds([x, y], [f"x={tmp_path / 'x.npy'}"], ranges)["y"].shape == (10,)
    assert feeds([x, y], [], ranges)["x"].shape == (3, 3)
    with pytest.raises(UsageError, match="rows is not given"):
        feeds([x, y], [])
    with pytest.raises(UsageError, match="rows is 10"):
        feeds([x, y], [], {"rows": 10})
    np.save(tmp_path / "x.npy", np.ones((5, 4), np.float32))
    with pytest.raises(UsageError, match="'x' takes rowsx3 of float32"):
        feeds([x], [f"x={tmp_path / 'x.npy'}"])


def test_arrays_are_saved_whatever_their_names(tmp_path: Path) -> None:
    arrays: dict[str, Array] = {
        "file": np.arange(3),
        "a/b": np.asarray(2.5),
        'é "': np.ones((0, 2)),
    }
    save_arrays(tmp_path / "out", arrays)
    with np.load(tmp_path / "out") as found:
        assert set(found.files) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)


def test_a_library_does_not_replace_its_model(tmp_path: Path) -> None:
    model, link = tmp_path / "net.onnx", tmp_path / "same"
    model.write_bytes(b"x")
    link.symlink_to(model)
    assert emitted_path(model, None, None) == Path("net.so")
    assert emitted_path(model, None, None, Form.C) == Path("net.c")
    assert emitted_path(model, None, Form.A, Form.C) == Path("net.a")
    assert emitted_path(model, tmp_path / "net.so", None) == tmp_path / "net.so"
    for output in (model, link):
        with pytest.raises(UsageError, match="would replace the model"):
            emitted_path(model, output, None)


def test_a_library_is_no_model_to_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.so").write_bytes(b"\x7fELF" * 9)
    assert main(["compile", "net.so", "--effort", "none"]) == 6
    assert "net.so is not an ONNX model" in capsys.readouterr().err


def test_random_inputs() -> None:
    default, zero, one = feeds([X, N], []), feeds([X, N], ["x=random"]), feeds([X], ["x=random:1"])
    assert np.array_equal(default["x"], zero["x"])
    assert not np.array_equal(default["x"], one["x"])
    assert default["n:0"].shape == () and default["n:0"].dtype == np.int64


def test_random_inputs_are_within_their_bounds() -> None:
    assert feeds([replace(N, bound=((5, 6),))], [])["n:0"] in (5, 6)


def test_an_input_has_one_value() -> None:
    with pytest.raises(UsageError, match="--input x=random:1 and --input x=random:2 contradict"):
        feeds([X], ["x=random:1", "x=random:2"])
    twice = feeds([X], ["x=random:1", "x=random:1"])
    assert np.array_equal(twice["x"], feeds([X], ["x=random:1"])["x"])


def test_the_seed_of_random_inputs_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seven = feeds([X], ["x=random:7"])["x"]
    monkeypatch.setenv("ANSORPY_SEED", "7")
    for given in ([], ["x=random"]):
        assert np.array_equal(feeds([X], given)["x"], seven)


def test_what_does_not_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2), np.float32))
    np.save(tmp_path / "d.npy", np.zeros((2, 3)))
    np.savez(tmp_path / "b.npz", y=np.zeros(1))
    (tmp_path / "t.npy").write_text("no array")
    cases = [
        ("a.npy", UsageError, "takes 2x3 of.*contains 3x2 of float32\nhint: save an array of"),
        ("d.npy", UsageError, r'contains 2x3 of float64\nhint: save it as .*"float32"'),
        ("b.npz", UsageError, "has no array 'x'"),
        ("t.npy", ForeignFile, "is not a numpy file"),
        ("no.npy", ForeignFile, "cannot read"),
    ]
    for name, kind, message in cases:
        with pytest.raises(kind, match=message):
            feeds([X], [f"x={tmp_path / name}"])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_archive_is_refused_or_its_array_is_whole(
    tmp_path: Path, save: Callable[..., None]
) -> None:
    path, array = tmp_path / "a.npz", np.arange(6, dtype=np.float32).reshape(2, 3)
    save(path, x=array)
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole) - 60, 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found = feeds([X], [f"x={path}"])
        except (ForeignFile, UsageError):
            refused += 1
        else:  # the byte was one that nobody reads, such as a date
            np.testing.assert_array_equal(found["x"], array)
    assert refused


@pytest.mark.parametrize(
    "shape", ["(1 << 40,)", f"({1 << 40},)", f"({1 << 20}, {1 << 20})", "(" * 200]
)
def test_an_array_that_does_not_fit_is_not_read(tmp_path: Path, shape: str) -> None:
    said = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said + bytes(24))
    with pytest.raises((ForeignFile, UsageError), match="is not a numpy file|contains"):
        feeds([X], [f"x={path}"])


@pytest.mark.parametrize("item", ["y=random", "x", "=random"])
def test_unknown_inputs(item: str) -> None:
    with pytest.raises(UsageError, match="names no input"):
        feeds([X], [item])


def test_arrays_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match="contains 1 of object"):
        feeds([X], [f"x={tmp_path / 'o.npy'}"])


def test_reading_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(ForeignFile, match="there is no database"):
        open_database(tmp_path / "absent.db")
    assert not (tmp_path / "absent.db").exists()


def test_libraries_are_known_by_their_bytes(tmp_path: Path) -> None:
    library, network = tmp_path / "lib", tmp_path / "net.so"
    library.write_bytes(b"\x7fELF and more")
    network.write_bytes(b"\x08\x07")
    assert is_library(library) and not is_library(network) and not is_library(tmp_path / "none")
    assert onnx_beside(network, None) == network
    with pytest.raises(UsageError, match="needs the network it was made from"):
        onnx_beside(library, None)


@pytest.mark.parametrize("verb", ["run", "verify", "bench", "show"])
def test_what_is_called_a_network_is_never_loaded_as_code(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\x7fELF and more")
    assert main([verb, str(path), "--threads", "1"]) == 6
    said = capsys.readouterr().err
    assert "net.onnx is not an ONNX file but a library, which is code" in said and "hint: " in said
