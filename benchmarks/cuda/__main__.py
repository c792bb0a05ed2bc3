"""``python -m benchmarks.cuda``: see :mod:`benchmarks.cuda.run`."""

from __future__ import annotations

import sys

from benchmarks.cuda.needed import MODULES, missing, sentence


def main() -> int:
    """Run the benchmark if its packages are installed."""
    lacking = missing()
    if set(lacking) - set(MODULES):
        print(sentence(lacking), file=sys.stderr)
        return 5
    from benchmarks.cuda import run

    return run.main()


if __name__ == "__main__":
    raise SystemExit(main())
