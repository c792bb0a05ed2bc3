from __future__ import annotations

import pytest

from ansorpy.errors import UsageError
from benchmarks.ops.suite import case_named, cases, matching


def test_names_are_unique_and_found() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert case_named(names[-1]) is cases()[-1]


def test_every_case_has_one_output_and_constants_where_the_peers_have() -> None:
    for case in cases():
        assert len(case.dag.outputs) == 1, case.name
        assert case.bytes > 0 and case.dag_flops > 0
        assert set(case.layouts()) <= {*(op.name for op in case.dag.args), "out"}


def test_the_suite_has_what_it_names() -> None:
    groups = [case.group for case in cases()]
    counted = {g: groups.count(g) for g in groups}
    four = ["C1D", "C2D", "C3D", "GMM", "GRP", "DIL", "DEP", "T2D", "CAP", "NRM", "ConvLayer",
            "TBG", "C2D b16", "DEP b16", "GMM b16", "TBG b16"]  # fmt: skip
    assert {g: counted[g] for g in four} == dict.fromkeys(four, 4)
    assert counted["PROJ"] == 9


def test_transposed_convolution_multiplies_no_zeros() -> None:
    case = case_named("T2D.8x8.256-128.k4s2.b1")
    assert case.dag_flops == 2 * 16 * 16 * 128 * 256 * 2 * 2


def test_matching() -> None:
    assert matching([]) == list(cases())
    assert {c.group for c in matching(["dep"])} == {"DEP", "DEP b16"}
    assert [c.name for c in matching(["c2d.7x7*.b16", "LN*"])] == [
        "C2D.7x7.512-512.k3s1.b16", "LN.128x768",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no case fits 'nothing'"):
        matching(["LN", "nothing"])
