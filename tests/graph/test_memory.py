"""The arena: no overlap in space and time, alignment, and not much more than the peak."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansorpy.graph.memory import ALIGNMENT_BYTES, Lifetime, plan_arena

LIFETIMES = st.dictionaries(
    st.integers(0, 30).map(str),
    st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(1, 5000)).map(
        lambda t: Lifetime(t[0], t[0] + t[1], t[2])
    ),
)


@given(LIFETIMES)
def test_values_alive_together_never_share_bytes(lifetimes: dict[str, Lifetime]) -> None:
    plan = plan_arena(lifetimes)
    names = sorted(lifetimes)
    for i, a in enumerate(names):
        assert plan.offsets[a] % ALIGNMENT_BYTES == 0
        assert plan.offsets[a] + lifetimes[a].size_bytes <= plan.bytes
        for b in names[i + 1 :]:
            if lifetimes[a].overlaps(lifetimes[b]):
                first, second = sorted((a, b), key=lambda n: plan.offsets[n])
                end = plan.offsets[first] + lifetimes[first].size_bytes
                assert end <= plan.offsets[second]


def test_values_of_a_chain_share_two_places() -> None:
    chain = {str(i): Lifetime(i, i + 1, 640) for i in range(10)}
    assert plan_arena(chain).bytes == 2 * 640


def test_a_gap_between_two_values_is_used() -> None:
    lifetimes = {
        "low": Lifetime(0, 9, 640),
        "short": Lifetime(0, 1, 320),
        "high": Lifetime(0, 9, 330),
        "late": Lifetime(2, 3, 300),
    }
    plan = plan_arena(lifetimes)
    assert plan.offsets["late"] == plan.offsets["short"]


def test_nothing_needs_no_arena() -> None:
    assert plan_arena({}).bytes == 0
