"""The real command line: ``ansorpy tune`` on a small network, killed or out of space."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx

from tests.campaigns.faults.processes import ROOT
from tests.frontend.models import graph_model, node

__all__ = ["command", "succeeded", "tuning"]

TRIALS = 8


def tuning(folder: Path) -> subprocess.Popen[str]:
    """``ansorpy tune`` at work in *folder*, on ``t.db``."""
    weights = np.random.default_rng(0).standard_normal((17, 33)).astype(np.float32)
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])]
    onnx.save(graph_model(nodes, {"x": (9, 17)}, ["y"], {"w": weights}), folder / "net.onnx")
    return command(folder, "tune", "net.onnx", "--trials", str(TRIALS), "--threads", "1")


def command(folder: Path, *words: str) -> subprocess.Popen[str]:
    """``ansorpy`` in *folder*, with the database ``t.db``."""
    return subprocess.Popen(
        [sys.executable, "-m", "ansorpy", *words, "--db", "t.db"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT, "TMPDIR": str(folder)},
    )  # fmt: skip


def succeeded(started: subprocess.Popen[str]) -> str:
    """What a command printed; it must end well."""
    said, complaint = started.communicate(timeout=240)
    assert started.returncode == 0, complaint
    return said
