"""`import ansorpy` is cheap: no heavy package is loaded by it, nor by naming its lazy exports.

Those who run libraries need neither the compiler nor what it is made of; nor does the command line
before it knows its verb.
"""

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
    "networkx",
    "sqlite3",
    "ansorpy.frontend",
    "ansorpy.schedule",
]

TENSORS = "ap.compute((4,), lambda i: ap.placeholder((4,), name='A')[i] * 2.0, name='B')"


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("pass", []), (TENSORS, []), ("ap.Target", []), ("dir(ap)", []), ("ap.load", ["pydantic"]),
        ("import ansorpy.cli.main", ["typer"]), ("import ansorpy.api.plugins", []),
        ("import ansorpy.api.evaluate.libraries", ["pydantic"]),
    ],
)  # fmt: skip
def test_import_loads_nothing_heavy(statement: str, loaded: list[str]) -> None:
    code = (
        "import json, sys; import ansorpy as ap\n"
        f"{statement}\n"
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == loaded
