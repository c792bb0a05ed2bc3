"""CMake and pkg-config packages, and the C++ header, used as a project would."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.cli.main import main
from ansorpy.runtime.packages.signature import demand_namespace
from ansorpy.runtime.status import Status
from tests.runtime.growing import decoder
from tests.runtime.packages.libraries import fixed, twice

needs = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "g++", "pkg-config"))),
    reason="needs cmake, g++ and pkg-config",
)

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(app CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(net 1.0 REQUIRED)
find_package(twice REQUIRED)
add_executable(app main.cpp)
target_compile_options(app PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(app PRIVATE net::net twice::twice)
"""
PAGE = Path(__file__).parents[3] / "docs" / "guides" / "deployment.md"
MAIN = """
#include <net.hpp>
#include <twice.hpp>
#include <cstdio>

int main() {
    std::vector<float> x(5 * 12), first(5 * 32), sums(5), more(5 * 32);
    std::FILE *file = std::fopen("x.bin", "rb");
    if (!file || std::fread(x.data(), 4, x.size(), file) != x.size()) return 1;
    net::model net(2);
    net.run(x, first, sums, more);
    for (float value : sums) std::printf("%.6g\\n", value);
    std::printf("%d\\n", static_cast<int>(net::model::x_shape[1]));
    twice::model two;
    std::vector<float> rows(17 * 64, 3), doubled(17 * 64);
    auto shapes = two.run(rows, {17, 64}, doubled);
    std::printf("%g %d %d\\n", doubled[1087], static_cast<int>(shapes.y[0]),
                static_cast<int>(two.plan({500, 64}).y[0]));
    try {
        two.run(rows, {8, 64}, doubled);
    } catch (const twice::error &e) {
        std::printf("%s %d\\n", e.what(), e.code() == TWICE_WRONG_SHAPE);
    }
    try {
        net.run(std::span(x).first(3), first, sums, more);
    } catch (const std::length_error &e) {
        std::puts(e.what());
    }
}
"""
REFUSED = f"twice_plan: {Status.WRONG_SHAPE.meaning} 1"
SAID = ["12", "6 17 500", REFUSED, "x has 3 elements instead of 60"]


@needs
def test_a_project_finds_the_package(tmp_path: Path, rng: np.random.Generator) -> None:
    library, x, wanted = fixed(tmp_path, rng)
    prefix = tmp_path / "first place"
    library = library.rename(tmp_path / "other.so")  # programs look for it under its first name
    for path in (library, twice(tmp_path)):
        assert main(["package", str(path), "--cmake", "-o", str(prefix)]) == 0
    prefix = prefix.rename(tmp_path / "installed here")  # it can be moved
    x.tofile(tmp_path / "x.bin")
    (tmp_path / "main.cpp").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)

    def run(*command: str) -> str:
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin",
                 "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
        ).stdout  # fmt: skip

    run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", "build")
    lines = run("build/app").splitlines()
    np.testing.assert_allclose([float(line) for line in lines[:5]], wanted[1], rtol=1e-3)
    assert lines[5:] == SAID
    (tmp_path / "main.c").write_text('#include "net.h"\nint main(void) { return net_init(); }\n')
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "net"))
    run("gcc", "main.c", *flags, "-o", "other")
    run("./other")
    assert run("pkg-config", "--modversion", "net") == "1.0.0\n"


@needs
def test_the_example_of_the_guide(tmp_path: Path) -> None:
    x = ap.placeholder((3, 8), name="x")
    y = ap.compute((3, 5), lambda i, j: x[i, j] + x[i, j + 3], name="y")
    library = ap.build(ap.State.initial([x, y])).export(tmp_path / "net.so")
    assert main(["package", str(library), "--cmake", "-o", str(tmp_path / "installed")]) == 0
    text = PAGE.read_text()
    for language, file in (("cmake", "CMakeLists.txt"), ("cpp", "main.cpp")):
        [block] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        (tmp_path / file).write_text(block)
    [build] = re.findall(r"^    (cmake -S .*)$", text, re.MULTILINE)
    subprocess.run(f"{build} && build/app", shell=True, cwd=tmp_path, check=True)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("kind", ["--cmake", "--wheel"])
def test_caches_need_the_c_header(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = decoder(heads_first=True).compiled().export(tmp_path / "cache.so")
    assert main(["package", str(path), kind, "-o", str(tmp_path)]) == 2
    assert "has outputs in the memory of inputs" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("template", "no namespace of C++ can be called 'template'"),
        ("std", "no namespace of C++ can be called 'std'"),
        ("abs", "no namespace of C++ can be called 'abs'"),  # of stdlib.h
        ("erf", "no namespace of C++ can be called 'erf'"),  # of math.h
        ("tm", "no namespace of C++ can be called 'tm'"),
        ("linux", "no namespace of C++ can be called 'linux'"),
        ("time_t", "no namespace of C++ can be called 'time_t'"),
        ("monetary", "the header monetary.h would hide that of C's library"),
        ("string", "the header string.h would hide that of C's library"),
    ],
)
def test_what_a_project_includes_keeps_its_name(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = ap.placeholder((3, 8), name="x")
    y = ap.compute((3, 8), lambda i, j: x[i, j] + 1.0, name="y")
    path = ap.build([x, y]).export(tmp_path / f"{name}.so")
    assert main(["package", str(path), "--cmake", "-o", str(tmp_path / "to")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("name", ["_name", "_handle", "PyLong_AsLong", "net"])
def test_what_only_this_process_knows_is_a_name_like_any_other(name: str) -> None:
    demand_namespace(name)


def packaged(library: Path, prefix: Path) -> str:
    """The CMake package of *library*, called net, in *prefix*."""
    assert main(["package", str(library), "--cmake", "-o", str(prefix)]) == 0
    return (prefix / "lib" / "cmake" / "net" / "netConfig.cmake").read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_is_installed_under_the_name_that_programs_look_for(tmp_path: Path) -> None:
    x = ap.placeholder((3, 8), name="x")
    y = ap.compute((3, 8), lambda i, j: x[i, j] + 1.0, name="y")
    library = ap.build([x, y]).export(tmp_path / "net.so").rename(tmp_path / "other.so")
    assert 'IMPORTED_SONAME "net.so"' in packaged(library, tmp_path / "named")
    assert (tmp_path / "named" / "lib" / "net.so").exists()
    source = ap.build([x, y], target="c").export(tmp_path / "net.c")
    library = tmp_path / "libnet.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    assert "IMPORTED_NO_SONAME TRUE" in packaged(library, tmp_path / "nameless")
    assert (tmp_path / "nameless" / "lib" / "libnet.so").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_headers_of_a_library_have_no_version(tmp_path: Path) -> None:
    x = ap.placeholder((3, 8), name="x")
    y = ap.compute((3, 8), lambda i, j: x[i, j] + 1.0, name="y")
    library = ap.build([x, y]).export(tmp_path / "net.so.1")
    assert 'IMPORTED_SONAME "net.so.1"' in packaged(library, tmp_path / "to")
    include = tmp_path / "to" / "include"
    assert {path.name for path in include.iterdir()} == {"net.h", "net.hpp"}
    assert '#include "net.h"' in (include / "net.hpp").read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_other_files_of_the_prefix_stay(tmp_path: Path) -> None:
    own = tmp_path / "include" / "twice_example.c"
    own.parent.mkdir()
    own.write_text("int mine;")
    assert main(["package", str(twice(tmp_path)), "--cmake", "-o", str(tmp_path)]) == 0
    assert own.read_text() == "int mine;"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_installed_library_is_packaged_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    library = twice(tmp_path / "lib")
    before = library.read_bytes()
    assert main(["package", str(library), "--cmake", "-o", str(tmp_path)]) == 0
    assert library.read_bytes() == before
    assert (tmp_path / "lib" / "cmake" / "twice" / "twiceConfig.cmake").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_parameters_are_called_like_nothing_in_the_header(tmp_path: Path) -> None:
    x, y = ap.placeholder((3, 8), name="requires"), ap.placeholder((3, 8), name="bind")
    z = ap.compute((3, 8), lambda i, j: x[i, j] + y[i, j], name="state")
    path = ap.build([x, y, z]).export(tmp_path / "net.so")
    assert main(["package", str(path), "--cmake", "-o", str(tmp_path)]) == 0
    run = re.search(r"void run\((.*)\)", (tmp_path / "include" / "net.hpp").read_text())
    assert run is not None
    assert [p.split()[-1] for p in run[1].split(", ")] == [
        "tensor_requires",
        "tensor_bind",
        "state",
    ]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_parameters_are_called_like_no_macro(tmp_path: Path) -> None:
    names = ("linux", "unix", "NULL", "EOF")
    inputs = [ap.placeholder((3, 8), name=name) for name in names]
    a, b, c, d = inputs
    y = ap.compute((3, 8), lambda i, j: a[i, j] + b[i, j] + c[i, j] + d[i, j], name="y")
    path = ap.build([*inputs, y]).export(tmp_path / "net.so")
    assert main(["package", str(path), "--cmake", "-o", str(tmp_path)]) == 0
    (tmp_path / "main.cpp").write_text("#include <cstdio>\n#include <net.hpp>\nnet::model made;\n")
    command = ["g++", "-std=gnu++20", "-fsyntax-only", f"-I{tmp_path / 'include'}", "main.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_shapes_and_members_have_names_of_their_own(tmp_path: Path) -> None:
    n = ap.dim("n", 1, 9)
    x, shape = ap.placeholder((n, 8), name="x"), ap.placeholder((n, 8), name="x_shape")
    inputs = ap.placeholder((n, 8), name="inputs")
    y = ap.compute((n, 8), lambda i, j: x[i, j] + shape[i, j] + inputs[i, j], name="inputs_")
    path = ap.build(ap.State.initial([x, shape, inputs, y])).export(tmp_path / "net.so")
    assert main(["package", str(path), "--cmake", "-o", str(tmp_path)]) == 0
    run = re.search(r"shapes run\((.*)\)", (tmp_path / "include" / "net.hpp").read_text())
    assert run is not None
    names = [p.split()[-1].lstrip("&") for p in run[1].split(", ")]
    assert len(set(names)) == len(names) == 7 and "inputs_" not in names
