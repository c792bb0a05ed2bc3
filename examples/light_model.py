"""Write one of the onnx package's ``light`` networks with seeded random weights.

python -m examples.light_model squeezenet squeezenet.onnx --seed 0
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx

from benchmarks.zoo.light import NAMES, light_model


def main() -> None:
    """Write the model named on the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    onnx.save(light_model(given.name, given.seed), given.output)
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
