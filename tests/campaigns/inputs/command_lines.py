"""Random command lines: options of all verbs with values of all kinds."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np

from ansorpy.cli.main import VERBS
from tests.campaigns.inputs.changes import one_of
from tests.campaigns.inputs.sound import NETWORK, sound_network

__all__ = ["random_command_line"]

Rng = np.random.Generator

_LIGHT = ("show", "explain", "report", "db")
_BUILDING = ("run", "verify", "export")
_BUILT = 0.02
"""Share of the verbs that build programs that get a sound network; those that search get none."""
_OPTIONS = (
    "--effort", "--trials", "--trials-per-task", "--time-limit", "--db", "--target", "--threads",
    "--dim", "--shape", "--precision", "--seed", "-o", "--emit", "--memory", "--objective",
    "--bound", "--latency-bound", "--baseline", "--weight", "--strategy", "--selector",
    "--cost-model", "--scheduler",
    "--transfer", "--measure", "--plugin", "--json", "--task", "--as", "--relations", "--input",
    "--save", "--against", "--model", "--tolerance", "--static", "--run", "--profile",
    "--random-weights", "--parts", "--help", "--version", "--wings", "-x", "--",
)  # fmt: skip
_VALUES = (
    "", "0", "-1", "1", "2", "3.5", "nan", "inf", "1e999", "9" * 40, "none", "quick", "x", "x:1",
    "x=", "=1", "x=1", "x=3x7", "x=3x-7", "x=0x7", "n=3", "n=0", "n=-1", "10s", "1h", "5ms", "0s",
    "1GiB", "-1GiB", "1 KiB", "strict", "tf32", "host", "x86-64-v3", "cortex-a76", "sm_90", "pdp11",
    "random", "evolution", "boosted", "gradient", "fixed", "both", "geomean", "latency_bounds",
    "nest", "llvm", "asm", "ptx", "steps", "program", "definition", "0", "softmax", "library", "c",
    "x=random", "x=random:3", "x=gone.npy", "onnxruntime", "openvino", "reference", "gone.onnx",
    "/", ".", "..", "/dev/null", "gone/out.so", "a" * 3000, "\u2603", "[bold]", "\\", "%d",
    "\ud800", "runs", "tasks", "model", "repair", "text.txt", "empty",
)  # fmt: skip
_FILES = ("gone.onnx", "text.txt", "empty", ".", "text.txt", "")


def random_command_line(rng: Rng, folder: Path) -> list[str]:
    """Write a few files into *folder*; returns a command line that no user would type."""
    sound_network(folder / NETWORK)
    (folder / "text.txt").write_text("no network, no database, no script (")
    (folder / "empty").touch()
    verb = one_of(rng, [function.__name__ for function in VERBS])
    words = [verb]
    if rng.random() < 0.9:
        sound = verb in _LIGHT or (verb in _BUILDING and rng.random() < _BUILT)
        files = (NETWORK,) * 6 + _FILES if sound else _FILES
        words.append(one_of(rng, files))
    own = [f"--{name.replace('_', '-')}" for name in _names(verb)]
    for _ in range(int(rng.integers(0, 5))):
        words.append(one_of(rng, own if own and rng.random() < 0.7 else _OPTIONS))
        if rng.random() < 0.85:
            words.append(one_of(rng, _VALUES))
    return words


def _names(verb: str) -> list[str]:
    """The parameters of *verb*, most of which have their option's name."""
    [function] = [function for function in VERBS if function.__name__ == verb]
    return [name for name in inspect.signature(function).parameters if name != "workers"]
