"""Write one of the onnx package's ``light`` networks with seeded random weights.

    python examples/light_model.py squeezenet squeezenet.onnx --seed 0

The package ships the networks' structure with constant weights, for which nearly any program
computes the right numbers; random ones make the comparison mean something.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx

from ansorpy.report.inputs import read_model
from ansorpy.report.randomize import random_weights

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = tuple(sorted(p.stem.removeprefix("light_") for p in FOLDER.glob("light_*.onnx")))


def light_model(name: str, seed: int) -> onnx.ModelProto:
    """The network *name* (one of ``NAMES``) with weights drawn from *seed*."""
    return random_weights(read_model(FOLDER / f"light_{name}.onnx"), seed)


def main() -> None:
    """Write the model that the command line asks for."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    onnx.save(light_model(given.name, given.seed), given.output)
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
