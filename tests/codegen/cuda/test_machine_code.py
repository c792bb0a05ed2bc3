"""What the machine code of a product's innermost loop is made of, where there is a disassembler.

``nvdisasm`` is part of the CUDA toolkit, and of NVIDIA's package of that name.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.build import CudaCode, build_cuda
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests import workloads
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.tensor_cores import HOPPER, matmul, sketches, wgmma_sketches

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(shutil.which("nvdisasm") is None, reason="there is no nvdisasm here"),
]
H100 = Target.parse("sm_90")


def product(tile: dict[str, int]) -> CudaCode:
    """A matrix product of 4096 with this tile, fetches of 16 bytes, three tiles under way."""
    task = Task(ComputeDAG.of(workloads.matmul(4096, 4096, 4096)), H100, 1)
    (sketch,) = SketchSampler(task).every()
    given = {"A.shared.i1/1": 4, "B.shared.i1/1": 4, "C.local.pipeline": 3, "A.shared.pad": 4}
    row = [{**given, **tile}.get(column, 0) for column in sketch.columns]
    assert sketch.space.contains(np.array(row))
    return build_cuda(lower(sketch.resolve(row)).run, H100, symbol="product")


def innermost(code: CudaCode, folder: Path, product: str = "FFMA") -> Counter[str]:
    """Instructions of the loop without another inside that has most products, by name and width."""
    path = folder / "product.cubin"
    path.write_bytes(code.cubin)
    listing = subprocess.run(
        ["nvdisasm", "-c", str(path)], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.strip() for line in listing.splitlines()]
    labels = {line[:-1]: n for n, line in enumerate(lines) if re.fullmatch(r"\.L_\w+:", line)}
    jumps = [(n, re.search(r"BRA `\((\.L_\w+)\)", line)) for n, line in enumerate(lines)]
    loops = [(labels[m[1]], n) for n, m in jumps if m is not None and labels[m[1]] < n]
    bodies = [
        (a, b)
        for a, b in loops
        if not any(a <= c and d <= b and (c, d) != (a, b) for c, d in loops)
    ]
    counts = (Counter(filter(None, map(_named, lines[a:b]))) for a, b in bodies)
    return max(counts, key=lambda found: found[product])


def _named(line: str) -> str | None:
    found = re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)
    if found is None or "@!PT" in line:  # what never runs only keeps others apart
        return None
    name, *kinds = found[1].split(".")
    width = next((kind for kind in kinds if kind in ("64", "128")), "")
    return f"{name}.{width}" if width else name


@pytest.mark.parametrize(
    ("columns", "share", "loads"),
    [
        # 128 x 128 for 256 threads, 8 x 8 sums each: 4 loads for 64 products
        ({"i": (2, 16, 4), "j": (2, 16, 4), "k": (32,)}, 0.92, 64),
        # 128 x 256, 8 x 16 each: 6 loads for 128
        ({"i": (2, 16, 4), "j": (4, 16, 4), "k": (16,)}, 0.89, 48),
    ],
)
def test_products_are_most_of_the_innermost_loop(
    columns: dict[str, tuple[int, ...]], share: float, loads: int, tmp_path: Path
) -> None:
    parts = {f"C.local.{a}/{n}": f for a, t in columns.items() for n, f in enumerate(t, 1)}
    code = product(parts)
    (taken,) = code.resources
    found = innermost(code, tmp_path)
    assert found["FFMA"] == 1024 and found["LDS.128"] == loads
    assert found["FFMA"] / found.total() > share
    assert taken.spilled_bytes == taken.stack_bytes == 0
    assert taken.registers <= (128 if code.plan.launches[0].grid[0] == 1024 else 255)


@pytest.mark.parametrize(("kind", "products", "loads"), [("float16", 64, 24), ("bfloat16", 64, 24)])
def test_tensor_cores_load_whole_fragments(
    kind: str, products: int, loads: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    (sketch,) = sketches(matmul(kind, 4096, 4096, 4096), rng, H100)
    tile = {"C.warp.i/1": 2, "C.warp.i/2": 4, "C.warp.j/1": 2, "C.warp.j/2": 8, "C.warp.k/1": 2}
    given = {**tile, "C.warp.pipeline": 3}
    row = [given.get(column, 8) for column in sketch.columns]
    assert sketch.space.contains(np.array(row))
    code = build_cuda(lower(sketch.resolve(row)).run, H100, symbol="product")
    found = innermost(code, tmp_path, "HMMA")
    # Two steps of 4 x 8 fragments: each loads 4 of A and 8 of B, and packs nothing.
    assert found["HMMA"] == products and found["LDSM"] == loads
    assert found["LDGSTS.128"] == 8 and found["PRMT"] <= 4 and found["LDS"] <= 4
    (taken,) = code.resources
    assert taken.spilled_bytes == taken.stack_bytes == 0


@pytest.mark.parametrize(("columns", "fragments", "kind"), [
    (256, 1, "float16"), (128, 2, "bfloat16"),
])  # fmt: skip
def test_warpgroups_multiply_while_tiles_are_copied(
    columns: int, fragments: int, kind: str, tmp_path: Path
) -> None:
    found = wgmma_sketches(matmul(kind, 4096, 4096, 4096), np.random.default_rng(0))
    sketch = next(s for s in found if f"n{columns}k16" in str(s.placed.history))
    given = {"C.warp.i/1": 2, "C.warp.i/2": 1, "C.warp.j/1": 1, "C.warp.j/2": fragments}
    given |= {"C.warp.k/1": 4, "C.warp.pipeline": 4, "A.shared.bulk": 0, "B.shared.bulk": 0}
    row = [given.get(column, 8) for column in sketch.columns]
    assert sketch.space.contains(np.array(row))
    program = lower(sketch.resolve(row)).run
    code = build_cuda(program, HOPPER, symbol="product")
    _, report = compile_source(code.source, HOPPER)
    assert "serialized" not in report
    loop = innermost(code, tmp_path, "HGMMA")
    # Four steps of 16; 128 and 256 rows of 128 bytes are copied by 256 threads.
    assert loop["HGMMA"] == 4 * fragments and loop["LDGSTS.128"] == 12
    assert loop["LDS"] == loop["LDSM"] == 0 and loop["WARPGROUP"] == 2
    (taken,) = code.resources
    assert taken.spilled_bytes == taken.stack_bytes == 0 and taken.registers <= 168
