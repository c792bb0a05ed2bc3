"""What a stage says of itself is checked when it is said, and when it is read from a file."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from ansorpy.errors import ForeignFile
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict


def test_only_what_differs_from_the_defaults_is_stated() -> None:
    assert Attrs().stated() == {}
    assert Attrs(unroll_axes=["a", "b"]).stated() == {"unroll_axes": ("a", "b")}  # type: ignore[arg-type]
    assert Attrs(flops=0, rounds_to_tf32=True).stated() == {"flops": 0, "rounds_to_tf32": True}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"unroll_axes": "i"}, "unroll_axes must be a sequence of axis names, got 'i'"),
    ({"no_split_at_inner": [1]}, "no_split_at_inner must be a sequence of axis names"),
    ({"error": -1.0}, "error must be a finite number of at least 0, got -1.0"),
    ({"error": float("nan")}, "error must be a finite number"),
    ({"error": float("inf")}, "error must be a finite number"),
    ({"flops": "many"}, "flops must be a finite number"),
    ({"flops": ""}, "flops must be a finite number"),
    ({"rounds_to_tf32": "no"}, "rounds_to_tf32 must be True or False, got 'no'"),
]


def test_numbers_of_numpy_are_numbers() -> None:
    attrs = Attrs(flops=cast(Any, np.prod((4, 8))), error=cast(Any, np.float32(0.5)))
    assert attrs == Attrs(flops=32, error=0.5)
    assert type(attrs.flops) is int and type(attrs.error) is float


@pytest.mark.parametrize(("given", "message"), BAD)
def test_nonsense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Attrs(**given)


def test_the_axes_named_are_those_of_the_stage() -> None:
    x = placeholder((4,), name="x")
    attrs = Attrs(unroll_axes=("i", "k"), no_split_at_inner=("j",))
    with pytest.raises(ValueError, match="y: attrs name j, k, but the axes are i"):
        compute((4,), lambda i: x[i] + 1.0, name="y", attrs=attrs)


@pytest.mark.parametrize("given", [*(given for given, _ in BAD), {"always_unroll": ["i"]}])
def test_nonsense_in_a_file_is_a_foreign_file(given: dict[str, Any]) -> None:
    x = placeholder((4,), name="x")
    data = dag_to_dict(ComputeDAG([compute((4,), lambda i: x[i] + 1.0, name="y")]))
    assert dag_from_dict(data)
    next(op for op in data["ops"] if op["kind"] == "compute")["attrs"] = given
    with pytest.raises(ForeignFile, match="attributes"):
        dag_from_dict(data)
