"""Wheels of random networks and operators, installed into an empty environment and called there."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ansorpy.runtime.packages.wheel import write_wheel
from ansorpy.target import Target
from tests.campaigns.campaign import Campaign
from tests.campaigns.exports.programs import random_kernel, random_network

__all__ = ["WHEELS"]

_CALL = """
import sys, numpy as np
from net import model
with np.load("in.npz") as given:
    results = model(*[given[name] for name in given])
results = results if isinstance(results, tuple) else (results,)
np.savez("out.npz", *results)
assert "ansorpy" not in sys.modules
"""


def _case(rng: np.random.Generator, number: int) -> str:
    """Needs pip, and a registry with numpy."""
    target = Target.host()
    made = random_kernel(rng, target, 2) if number % 2 else random_network(rng, target)
    with TemporaryDirectory(prefix="ansorpy-wheels-") as name:
        folder = Path(name)
        made.export(folder / "net.so")
        wheel = write_wheel(folder / "net.so", folder / "dist", "1.0")
        venv.create(folder / "empty", with_pip=True)
        python, work = folder / "empty/bin/python", folder / "work"
        _run([python, "-m", "pip", "install", "-q", wheel], folder)
        work.mkdir()
        np.savez(work / "in.npz", *made.feeds)
        _run([python, "-c", _CALL], work)
        with np.load(work / "out.npz") as found:
            made.check([found[name] for name in found])
    return "operator" if number % 2 else "network"


def _run(command: list[object], folder: Path) -> None:
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


WHEELS = Campaign(
    "installs the wheel of a random network or operator in an empty environment, and calls it",
    _case, short=0,
)  # fmt: skip
