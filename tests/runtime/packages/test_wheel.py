"""Wheels: unpacked, they compute without ansorpy; ``tests.campaigns`` installs one."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.cli.main import main
from tests.runtime.packages.libraries import fixed, twice

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

CALL = """
import inspect, sys, threading
import numpy as np
import net, twice
x = np.load("x.npy")
results = net.model(x, threads=2)
np.savez("results.npz", *results)
others = []
def call(): others.append(net.model(x))
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert all(np.array_equal(a, b) for other in others for a, b in zip(other, results))
net._library._init = None  # once is enough
net.model(x)
print(inspect.signature(net.model), net.metadata["name"], net.__version__)
rows = np.ones((17, 64), np.float32)
class Foreign:
    def __dlpack__(self, **options): return rows.__dlpack__()
    def __dlpack_device__(self): return rows.__dlpack_device__()
assert np.array_equal(twice.model(Foreign()), 2 * rows)
assert np.array_equal(twice.model(np.asfortranarray(rows)), 2 * rows)
odd = np.frombuffer(b" " + rows.tobytes(), np.float32, offset=1).reshape(rows.shape)
called, tensor = [], twice._model._tensor
twice._model._tensor = lambda array: called.append(array.flags.aligned) or tensor(array)
assert np.array_equal(twice.model(odd), 2 * rows) and called == [True]
for wrong in (rows[:3], rows[0], rows.astype(float), rows[:, 1:]):
    try: twice.model(wrong)
    except twice.ModelError as error: print(error)
assert not any(name.startswith("ansorpy") for name in sys.modules)
"""
SAID = """\
(x: 'NDArray[np.float32]', *, threads: 'int | None' = None) -> \
'tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]' net 1.2
inputs of 3x64: the network takes nx64 of float32, n from 16 to 512
input 'x' takes nx64 of float32, got 64 of float32
input 'x' takes nx64 of float32, got 17x64 of float64
input 'x' takes nx64 of float32, got 17x63 of float32
"""


def test_a_wheel_needs_numpy_alone(tmp_path: Path, rng: np.random.Generator) -> None:
    library, x, wanted = fixed(tmp_path, rng)
    work = tmp_path / "work"  # where no library is: Python would take net.so for a module
    work.mkdir()
    np.save(work / "x.npy", x)
    for path in (library, twice(tmp_path)):
        assert main(["package", str(path), "--wheel", "-o", str(tmp_path), "--version", "1.2"]) == 0
    for wheel in tmp_path.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            assert_recorded(archive)
            archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", CALL], cwd=work, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(tmp_path / "site")},
    )  # fmt: skip
    assert done.stderr == "" and done.stdout == SAID
    with np.load(work / "results.npz") as results:
        for name, array in zip(results, wanted, strict=True):
            np.testing.assert_allclose(results[name], array, rtol=1e-4, atol=1e-5)


def test_the_tag_says_which_glibc_the_library_needs(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    library, _, _ = fixed(tmp_path, rng)
    found = re.findall(rb"\0GLIBC_2\.(\d+)[.\d]*(?=\0)", library.read_bytes())
    assert main(["package", str(library), "--wheel", "-o", str(tmp_path)]) == 0
    [wheel] = tmp_path.glob("*.whl")
    arch = platform.machine()
    assert wheel.name.endswith(f"-manylinux_2_{max(map(int, found))}_{arch}.whl")


def test_a_library_that_needs_others_gets_no_manylinux_tag(tmp_path: Path) -> None:
    x = ap.placeholder((8, 64), name="x")
    state = ap.State.initial([x, ap.compute((8, 64), lambda i, j: x[i, j] * 2.0, name="y")])
    kernel = ap.build(state.parallel("y", [state.stages[-1].iters[0]]), target="c:cores=2")
    assert (
        main(["package", str(kernel.export(tmp_path / "op.so")), "--wheel", "-o", str(tmp_path)])
        == 0
    )
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name.endswith(f"-linux_{platform.machine()}.whl")


@pytest.mark.parametrize(
    ("file", "project", "package"),
    [
        ("net (1).so", "net_1", "net__1_"),
        ("模型.so", "net", "net___"),
        ("a,b.so", "a_b", "a_b"),
    ],
)
def test_pip_accepts_the_name_and_the_files(
    file: str, project: str, package: str, tmp_path: Path
) -> None:
    library = twice(tmp_path, file)
    assert main(["package", str(library), "--wheel", "-o", str(tmp_path / "made")]) == 0
    [wheel] = (tmp_path / "made").iterdir()
    assert wheel.name.startswith(f"{project}-1.0.0-py3-none-")
    with zipfile.ZipFile(wheel) as archive:
        assert_recorded(archive)
        text = archive.read(f"{project}-1.0.0.dist-info/METADATA").decode()
        assert f"Name: {project}\n" in text
        assert f"{package}/{file}" in archive.namelist()


def test_names_of_dimensions_do_not_end_a_text(tmp_path: Path) -> None:
    n = ap.dim('n"\\\r\n\x00\x0c\x85', 16, 512)
    x = ap.placeholder((n, 64), name="x")
    y = ap.compute((n, 64), lambda i, j: x[i, j] * 2.0, name="y")
    library = ap.build(ap.State.initial([x, y])).export(tmp_path / "net.so")
    assert main(["package", str(library), "--wheel", "-o", str(tmp_path)]) == 0
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in ("net/__init__.py", "net/_model.py"):
            text = archive.read(name).decode()
            assert f"n{chr(39) * 7}x64 of float32" in text and compile(text, name, "exec")


@pytest.mark.parametrize("name", ["json", "numpy"])
def test_modules_keep_their_names(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = str(twice(tmp_path, f"{name}.so"))
    assert main(["package", library, "--wheel", "-o", str(tmp_path / "made")]) == 2
    assert f"no wheel can be called {name!r}" in capsys.readouterr().err


def assert_recorded(archive: zipfile.ZipFile) -> None:
    """RECORD has the digests of all files, and METADATA the one dependency."""
    [record] = [name for name in archive.namelist() if name.endswith("RECORD")]
    rows = list(csv.reader(archive.read(record).decode().splitlines()))
    assert [name for name, _, _ in rows] == archive.namelist()
    for name, digest, size in rows[:-1]:
        data = archive.read(name)
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert (digest, size) == (f"sha256={found}", str(len(data)))
    text = archive.read(record.replace("RECORD", "METADATA")).decode()
    assert [line for line in text.splitlines() if "Requires-Dist" in line] == [
        "Requires-Dist: numpy>=1.25"
    ]


@pytest.mark.parametrize("kind", ["--wheel", "--cmake"])
def test_a_folder_that_cannot_be_made(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = str(twice(tmp_path))
    assert main(["package", library, kind, "-o", f"{library}/made"]) == 2
    assert f"error: cannot write {library}/" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["--wheel", "--cmake"])
def test_a_package_replaces_that_of_before(kind: str, tmp_path: Path) -> None:
    """Whoever uses its files keeps them: a process ends if a library that it maps is cut."""
    command = ["package", str(twice(tmp_path)), kind, "-o", str(tmp_path / "made")]
    assert main(command) == 0
    with ExitStack() as stack:
        files = [path for path in (tmp_path / "made").rglob("*") if path.is_file()]
        held = [stack.enter_context(path.open("rb")) for path in files]
        assert main(command) == 0
        assert files and [os.fstat(file.fileno()).st_nlink for file in held] == [0] * len(files)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "say what to write"),
        (["--wheel", "--cmake"], 2, "--wheel and --cmake write two packages"),
        (["--wheel", "--version", "1.x"], 2, "'1.x' is not a version"),
        (["--wheel", "-o", "net.whl"], 2, "the name of a wheel follows from the library"),
        (["--wheel"], 6, "No such file or directory"),
    ],
)
def test_what_cannot_be_packaged(
    arguments: list[str], code: int, message: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main(["package", str(tmp_path / "net.so"), *arguments]) == code
    assert message in capsys.readouterr().err
