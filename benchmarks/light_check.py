"""``python -m benchmarks.light_check``: compare the ``light`` networks with onnxruntime, four ways.

Each network gets seeded random weights and is compiled.  Its outputs and the input of its last
softmax are compared with onnxruntime's, from Python and from a C program linked with the exported
library, each with one thread and with two.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime

import ansorpy as ap
from ansorpy.evaluation.inputs import random_value
from ansorpy.evaluation.onnx_edit import FinalSoftmax, softmax_inputs_as_outputs
from ansorpy.evaluation.verify import compare_outputs
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.library.linker import library_name
from benchmarks.zoo.light import NAMES, light_model

__all__ = ["check", "main", "run_from_c"]

Arrays = Mapping[str, np.ndarray]

CALLER = """
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>

static void *bytes(size_t n) {{ return aligned_alloc(64, (n + 63) / 64 * 64); }}

int main(int argc, char **argv) {{
    const size_t in_bytes[] = {{{in_bytes}}}, out_bytes[] = {{{out_bytes}}};
    {name}_tensor inputs[{n_in}] = {{{in_shapes}}}, outputs[{n_out}] = {{0}};
    int threads = atoi(argv[1]), code = {name}_init();
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    if (code || !in || !out) return code ? code : 100;
    for (int i = 0; i < {n_in}; ++i) {{
        inputs[i].data = bytes(in_bytes[i]);
        if (fread(inputs[i].data, 1, in_bytes[i], in) != in_bytes[i]) return 101;
    }}
    for (int i = 0; i < {n_out}; ++i) outputs[i].data = bytes(out_bytes[i]);
    size_t context_bytes;
    code = {name}_plan(inputs, outputs, threads, &context_bytes);
    if (code) return code;
    code = {name}_run(bytes(context_bytes), inputs, outputs, threads);
    for (int i = 0; i < {n_out}; ++i) fwrite(outputs[i].data, 1, out_bytes[i], out);
    fclose(out);
    return code;
}}
"""


def run_from_c(
    model: CompiledModel, feeds: Arrays, folder: Path, threads: int
) -> dict[str, np.ndarray]:
    """Export *model* to *folder*, link a C program with it, and run the program on *feeds*."""
    library = folder / "net.so"
    name = library_name(library)
    inputs, outputs = model.get_inputs(), model.get_outputs()
    if not library.exists():
        model.export(library)
        shapes = (f"{{.shape = {{{', '.join(map(str, p.shape))}}}}}" for p in inputs)
        source = CALLER.format(
            name=name, n_in=len(inputs), n_out=len(outputs), in_shapes=", ".join(shapes),
            in_bytes=", ".join(str(feeds[p.name].nbytes) for p in inputs),
            out_bytes=", ".join(str(int(np.prod(p.shape)) * p.dtype.itemsize) for p in outputs),
        )  # fmt: skip
        (folder / "caller.c").write_text(source)
        subprocess.run(
            ["cc", "-O1", "caller.c", "net.so", "-Wl,-rpath,$ORIGIN", "-o", "caller"],
            cwd=folder, check=True,
        )  # fmt: skip
    (folder / "in.bin").write_bytes(b"".join(feeds[p.name].tobytes() for p in inputs))
    subprocess.run(["./caller", str(threads), "in.bin", "out.bin"], cwd=folder, check=True)
    raw, at, found = (folder / "out.bin").read_bytes(), 0, {}
    for port in outputs:
        size = int(np.prod(port.shape)) * port.dtype.itemsize
        found[port.name] = np.frombuffer(raw[at : at + size], port.dtype).reshape(port.shape)
        at += size
    return found


def check(name: str, *, effort: str, seed: int, db: Path | None) -> bool:
    """Compare network *name* in all four ways, print a line for each; True when all agree."""
    model, softmaxes = softmax_inputs_as_outputs(light_model(name, seed))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    compiled = ap.compile(model, effort=effort, db=db)  # type: ignore[arg-type]
    feeds = {p.name: random_value(p.shape, p.dtype, seed, p.name) for p in compiled.get_inputs()}
    expected = dict(zip(names, session.run(names, dict(feeds)), strict=True))
    agree = True
    with tempfile.TemporaryDirectory(prefix="light-") as folder:
        for threads in (1, 2):
            python = dict(zip(names, compiled.run(names, feeds, threads=threads), strict=True))
            agree &= _line(name, f"Python, {threads} threads", python, expected, softmaxes)
            from_c = run_from_c(compiled, feeds, Path(folder), threads)
            agree &= _line(name, f"C, {threads} threads", from_c, expected, softmaxes)
    return agree


def _line(
    name: str, way: str, ours: Arrays, theirs: Arrays, softmaxes: Mapping[str, FinalSoftmax]
) -> bool:
    result = compare_outputs(name, "onnxruntime", ours, theirs, softmaxes)
    errors = ", ".join(f"{c.name} {c.error:.1e}" for c in result.checks)
    print(f"{name:14} {way:18} {'ok' if result.ok else 'DIFFERS':8} {errors}", flush=True)
    return result.ok


def main() -> int:
    """Check the networks named on the command line (default all); return 4 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--effort", default="none", choices=("none", "quick", "full"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--db", type=Path, default=None)
    asked = parser.parse_args()
    results = [
        check(name, effort=asked.effort, seed=asked.seed, db=asked.db)
        for name in asked.names or NAMES
    ]
    return 0 if all(results) else 4


if __name__ == "__main__":
    raise SystemExit(main())
