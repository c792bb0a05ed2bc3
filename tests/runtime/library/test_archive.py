"""Static libraries: programs that have tasks in common can be linked together."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.runtime.library.archive import write_archive
from ansorpy.runtime.library.symbols import defined, renamed_symbols
from tests.runtime import programs

MAIN = """
#include "one.h"
#include "two.h"
int main(void) {
    static float x[5 * 12], out[2][3][5 * 32];
    static char context[1 << 16];
    for (int i = 0; i < 5 * 12; ++i) x[i] = i % 7;
    one_tensor in = {x, {5, 12}}, outs[3] = {{out[0][0], {5, 32}}, {out[0][1], {5}}, {out[0][2], {5, 32}}};
    two_tensor in2 = {x, {5, 12}}, outs2[3] = {{out[1][0], {5, 32}}, {out[1][1], {5}}, {out[1][2], {5, 32}}};
    if (one_init() || two_init() || one_run(context, &in, outs, 2) || two_run(context, &in2, outs2, 2))
        return 1;
    return out[0][0][3] == out[1][0][3]; /* other constants, other results */
}
"""  # noqa: E501


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("suffix", [".a", ".o"])
def test_two_programs_with_the_same_tasks(
    suffix: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        programs.model(rng)[0].export(tmp_path / f"{name}{suffix}")
    (tmp_path / "main.c").write_text(MAIN)
    files = ["main.c", f"one{suffix}", f"two{suffix}"]
    subprocess.run(["cc", *files, "-lm", "-pthread", "-o", "both"], cwd=tmp_path, check=True)
    subprocess.run(["./both"], cwd=tmp_path, check=True)
    if suffix == ".a" and shutil.which("nm"):
        listed = subprocess.check_output(["nm", "--print-armap", tmp_path / "one.a"], text=True)
        assert "one_run in entry0.o" in listed
        assert "one_dense_task in task" in listed and "\ndense_task" not in listed


def test_other_names_for_some_symbols() -> None:
    code = programs.task_of(programs.tail(), "tail").built.run.code
    assert defined(code) == ["tail"]
    longer = renamed_symbols(code, {"tail": "a_longer_name", "absent": "x"})
    other = renamed_symbols(longer, {"a_longer_name": "t"})
    assert defined(other) == ["t"]


def test_a_header_has_ten_digits_for_a_size(tmp_path: Path) -> None:
    with (tmp_path / "constants.o").open("wb") as file:
        file.truncate(10**10)  # a hole, which takes no space
    with pytest.raises(UsageError, match=r"cannot hold the 10\.0 GB of constants\.o"):
        write_archive(tmp_path / "net.a", {tmp_path / "constants.o": ["net_constants"]})
    assert not (tmp_path / "net.a").exists()


def test_machine_code_is_no_listing(rng: np.random.Generator, tmp_path: Path) -> None:
    model, _ = programs.model(rng)
    for name in ("net.ll", "net.s"):
        with pytest.raises(UsageError, match=f"is machine code, which cannot be written as {name}"):
            model.export(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
