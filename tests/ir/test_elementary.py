"""The errors that the documentation states are those of the table."""

from __future__ import annotations

import re
from pathlib import Path

from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "concepts" / "vector_math.md"


def test_the_documented_errors() -> None:
    rows = re.findall(r"^\| (\S+) \| ([\d.]+) \| ([\d.]+|C library) \|", DOCUMENT.read_text(), re.M)
    stated = {}
    for name, single, double in rows:
        stated[name, DType.FLOAT32] = float(single)
        if double != "C library":
            stated[name, DType.FLOAT64] = float(double)
    assert stated == {(fn.value, kind): a.error for (fn, kind), a in APPROXIMATIONS.items()}


def test_domains() -> None:
    limited = {fn.value for (fn, _), found in APPROXIMATIONS.items() if found.domain}
    assert limited == {"sin", "cos"}
