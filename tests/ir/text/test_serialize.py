from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from ansorpy.errors import ForeignFile
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Var, walk
from ansorpy.ir.operands import misfit
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.serialize import (
    dag_from_dict,
    dag_from_json,
    dag_to_dict,
    dag_to_json,
    structural_hash,
)
from tests.ir.workloads import ALL, matmul


@pytest.mark.parametrize("make", ALL)
def test_a_dag_survives_json(make: Callable[[], ComputeDAG]) -> None:
    dag = make()
    data = json.loads(json.dumps(dag_to_dict(dag), allow_nan=False))
    back = dag_from_json(dag_to_json(dag))
    assert [op.name for op in back.ops] == [op.name for op in dag.ops]
    assert [op.name for op in back.args] == [op.name for op in dag.args]
    for old, new in zip(dag.outputs, back.outputs, strict=True):
        assert same_structure(old, new)
    assert dag_to_dict(back) == data
    assert structural_hash(back) == structural_hash(dag)


def test_the_hash_ignores_names_and_sees_all_else() -> None:
    def pool(
        name: str,
        shape: int = 8,
        constant: bool = False,
        c: float = 1.0,
        unroll_axes: tuple[str, ...] = (),
    ) -> str:
        x = placeholder((shape,), name=name, constant=constant)
        y = compute(
            (shape,),
            lambda i: x[i] + c,
            name=name + "y",
            names=[name],
            attrs=Attrs(unroll_axes=unroll_axes),
        )
        return structural_hash(ComputeDAG([y]))

    same = pool("a")
    assert pool("b") == same
    assert pool("a", unroll_axes=("a",)) == pool("b", unroll_axes=("b",))
    others = [
        pool("a", 9), pool("a", constant=True), pool("a", c=2.0), pool("a", c=-0.0),
        pool("a", c=0.0), pool("a", unroll_axes=("a",)),
    ]  # fmt: skip
    assert len({same, *others}) == 7


def test_all_workloads_have_different_hashes() -> None:
    assert len({structural_hash(make()) for make in ALL}) == len(ALL)


def test_the_order_of_arguments_and_odd_constants_survive() -> None:
    x, other = placeholder((2,), name="x"), placeholder((3,), name="other")
    y = compute((2,), lambda i: x[i] * float("inf") + 0.1 * other[i], name="y")
    back = dag_from_json(dag_to_json(ComputeDAG([y], [other, x])))
    assert [op.name for op in back.args] == ["other", "x"]
    assert same_structure(back.outputs[0], y)


def test_a_free_variable_is_refused() -> None:
    x = placeholder((4,), name="x")
    y = compute((4,), lambda i: x[Var("loose")], name="y")
    with pytest.raises(ValueError, match="y uses a Var bound nowhere"):
        dag_to_dict(ComputeDAG([y]))


def _broken(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(dag_to_dict(matmul()))
    at: Any = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    "data",
    [
        None, [], "text", {}, {"format": "ansorpy-dag", "version": 1},
        _broken(("version",), 2), _broken(("format",), "tvm"), _broken(("ops",), {}),
        _broken(("args",), [9]), _broken(("outputs",), []), _broken(("outputs",), [0]),
        _broken(("outputs",), [True]), _broken(("args",), [2]), _broken(("args",), [0]),
        _broken(("ops", 0, "shape"), [0, 7]), _broken(("ops", 0, "shape"), [1 << 63, 7]),
        _broken(("ops", 0, "dtype"), "complex64"),
        _broken(("ops", 0, "kind"), "scan"), _broken(("ops", 0, "name"), 3),
        _broken(("ops", 0, "name"), "w"), _broken(("ops", 0, "constant"), 1),
        _broken(("ops", 2, "axes"), ["i", "i", "k"]), _broken(("ops", 2, "reduce"), []),
        _broken(("ops", 2, "rows", 0), ["axis", 7]), _broken(("ops", 2, "rows", 0), []),
        _broken(("ops", 2, "rows", 0), ["axis"]), _broken(("ops", 2, "rows", 0), ["pickle", 0]),
        _broken(("ops", 2, "rows", 2), ["load", 0, 0]), _broken(("ops", 2, "body"), 0),
        _broken(("ops", 2, "rows", 0), ["const", "float32", 1.5]),
        _broken(("ops", 2, "rows", 0), ["const", "float32", "x"]),
        _broken(("ops", 2, "rows", 0), ["binary", "+", 5, 5]),
        _broken(("ops", 2, "rows", 0), ["const", "uint8", -1]),
        _broken(("ops", 2, "rows", 0), ["const", "int64", 1 << 63]),
        _broken(("ops", 2, "rows", 0), ["const", "bool", 2]),
        _broken(("ops", 2, "rows", 0), ["const", "float32", "0x1p99999"]),
        _broken(("ops", 2, "rows", 4), ["call", "bits", 0]),
        _broken(("ops", 2, "rows", 4), ["binary", "and", 0, 1]),
        _broken(("ops", 2, "rows", 4), ["call"]), _broken(("ops", 2, "axes"), ["i", [], "k"]),
        _broken(("ops", 2, "rows", 0), ["const", "int32", True]),
    ],
)  # fmt: skip
def test_foreign_data_is_refused_with_one_error(data: object) -> None:
    with pytest.raises(ForeignFile, match="not a description of a compute DAG"):
        dag_from_dict(data)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, b"\xff", "[]"])
def test_a_text_that_is_no_definition_is_refused_with_the_same_error(text: str | bytes) -> None:
    with pytest.raises(ForeignFile, match="not a description of a compute DAG"):
        dag_from_json(text)


def test_an_expression_deeper_than_can_be_handled_is_refused() -> None:
    sums = [["binary", "+", n, n] for n in range(1, 5000)]
    rows = [["axis", 0], ["const", "int64", 1], *sums, ["reduce", "sum", 5000]]
    data = _broken(("ops", 2, "rows"), rows)
    data["ops"][2]["body"] = len(rows) - 1
    with pytest.raises(ForeignFile, match="too deep"):
        dag_from_dict(data)


_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 1 << 63, -(1 << 63), 1.5, "", "i", "0x1p99999", "nan",
    "bool", "int64", "uint8", "float32", "and", "**", "min", "bits", "word", "fma", "not", "select",
    "reduce", "cast", "load", "call", [], {}, [0], [[1]], {"0": [1]}, ["const", "uint8", -1],
)  # fmt: skip


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Each container in *data* with each of its keys."""
    if not isinstance(data, dict | list):
        return []
    items = list(data.items() if isinstance(data, dict) else enumerate(data))
    return [(data, key) for key, _ in items] + [p for _, value in items for p in _places(value)]


def _mutate(data: Any, rng: random.Random) -> None:
    """Change, remove, repeat or exchange some of what *data* holds, wherever it is."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(data)
        at, key = rng.choice(places)
        other, its = rng.choice(places)
        match rng.randrange(8):
            case 0:
                del at[key]
            case 1 if isinstance(at, list):
                at.insert(key, copy.deepcopy(at[key]))
            case 2:
                at[key] = copy.deepcopy(other[its])
            case 3:
                at[key] = copy.deepcopy(rng.choice(_VALUES))
            case _ if type(at[key]) is int:
                at[key] = rng.randrange(8)
            case _ if isinstance(at[key], str):
                at[key] = rng.choice([v for v in _VALUES if isinstance(v, str)])


@pytest.mark.parametrize("make", ALL)
def test_what_is_changed_at_random_is_refused_or_a_definition(
    make: Callable[[], ComputeDAG],
) -> None:
    rng = random.Random(7)
    whole = dag_to_dict(make())
    taken = 0
    for _ in range(120):
        data = copy.deepcopy(whole)
        _mutate(data, rng)
        try:
            dag = dag_from_dict(json.loads(json.dumps(data)))
        except ForeignFile:
            continue
        taken += 1
        written = dag_to_dict(dag)
        assert dag_to_dict(dag_from_dict(written)) == written
        assert all(misfit(e) is None for op in dag.computes for e in walk(op.body))
    assert 0 < taken < 120
