"""Generated C run in a process of its own, where sanitizers end it at the first fault.

Each array is a block of the heap of exactly its size, so that every access outside is found.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.codegen.c.emit import emit_c, translation_unit
from ansorpy.codegen.c.style import Style
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Program
from tests.codegen.c.compiled import TARGET

__all__ = ["UNDEFINED", "run_apart"]

UNDEFINED = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_MAIN = """
#include <stdio.h>
#include <stdlib.h>

struct program {
  int32_t (*run)(void *const *, void *, int32_t);
  const size_t *sizes;
  size_t count, workspace;
};

static const struct program programs[] = {
%s
};

int main(void) {
  for (size_t k = 0; k < sizeof programs / sizeof *programs; ++k) {
    const struct program p = programs[k];
    void **args = malloc(p.count * sizeof *args);
    for (size_t n = 0; n < p.count; ++n) {
      args[n] = malloc(p.sizes[n]);
      if (fread(args[n], 1, p.sizes[n], stdin) != p.sizes[n]) return 2;
    }
    void *workspace = p.workspace ? aligned_alloc(64, (p.workspace + 63) / 64 * 64) : NULL;
    if (p.run(args, workspace, THREADS)) return 3;
    for (size_t n = 0; n < p.count; ++n) {
      fwrite(args[n], 1, p.sizes[n], stdout);
      free(args[n]);
    }
    free(workspace);
    free(args);
  }
  return 0;
}
"""
Array = NDArray[Any]


def run_apart(
    programs: Mapping[str, tuple[Program, Sequence[Array]]],
    folder: Path,
    style: Style | None = None,
    *,
    flags: Sequence[str] = UNDEFINED,
    threads: int = 1,
) -> None:
    """Run each program, by its symbol, on its arrays, in place."""
    sources = [emit_c(program, TARGET, name, style) for name, (program, _) in programs.items()]
    rows = []
    for source, (_, arrays) in zip(sources, programs.values(), strict=True):
        sizes = ", ".join(str(array.nbytes) for array in arrays)
        space = most(source.storage.workspace_bytes(threads))
        rows.append(f"  {{{source.symbol}, (const size_t[]){{{sizes}}}, {len(arrays)}, {space}}},")
    text = translation_unit(sources) + f"#define THREADS {threads}" + _MAIN % "\n".join(rows)
    path = folder / "programs.c"
    path.write_text(text)
    command = [*find_compiler().command, "-std=c11", *flags, str(path), "-o", str(folder / "all")]
    built = subprocess.run([*command, "-lm"], check=False, capture_output=True)
    assert not built.returncode, built.stderr.decode()[:4000]
    given = b"".join(array.tobytes() for _, arrays in programs.values() for array in arrays)
    done = subprocess.run([str(folder / "all")], input=given, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()[:4000]
    at = 0
    for _, arrays in programs.values():
        for array in arrays:
            found = np.frombuffer(done.stdout, array.dtype, array.size, at)
            array[...] = found.reshape(array.shape)
            at += array.nbytes
