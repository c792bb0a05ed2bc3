"""`import ansorpy` is cheap: no heavy package is loaded by it, nor by naming its lazy exports."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = [
    "llvmlite",
    "lightgbm",
    "onnx",
    "onnxruntime",
    "islpy",
    "typer",
    "scipy",
    "pydantic",
    "rich",
]

TENSORS = "ap.compute((4,), lambda i: ap.placeholder((4,), name='A')[i] * 2.0, name='B')"


@pytest.mark.parametrize("statement", ["pass", TENSORS, "ap.Target", "dir(ap)"])
def test_import_loads_nothing_heavy(statement: str) -> None:
    code = (
        "import json, sys; import ansorpy as ap\n"
        f"{statement}\n"
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
