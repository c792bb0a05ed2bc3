"""The arena: no overlap in space and time, alignment, and not much more than the peak."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ansorpy.graph.memory import ArenaPlan, Lifetime, Placed, plan_arena
from ansorpy.ir.extents import Extent, dim, dims_of
from ansorpy.ir.sizes import at, fixed
from ansorpy.ir.strides import ALIGNMENT_BYTES, padded

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


@given(LIFETIMES)
def test_a_value_lies_at_the_lowest_free_offset_or_centred(lifetimes: dict[str, Lifetime]) -> None:
    """With what is placed before it, found by comparing all pairs."""
    plan = plan_arena(lifetimes)
    order = sorted(lifetimes, key=lambda name: (-lifetimes[name].size_bytes, lifetimes[name].first))
    before: dict[str, tuple[int, int]] = {}
    for name in order:
        size, at = padded(lifetimes[name].size_bytes), plan.offsets[name]
        others = [before[other] for other in before if lifetimes[name].overlaps(lifetimes[other])]
        ends = {end for _, end in others}
        lowest = min(
            start for start in {0, *ends}
            if all(start + size <= low or end <= start for low, end in others)
        )  # fmt: skip
        middles = [low + (end - low) // 2 for low, end in before.values()]
        assert at == lowest or any(abs(at + size // 2 - m) < 2 * ALIGNMENT_BYTES for m in middles)
        before[name] = (at, at + size)


def test_each_core_writes_where_it_wrote_before() -> None:
    sizes = [64 * n for n in (96, 64, 32, 16, 48)]
    chain = {str(i): Lifetime(i, i + 1, size) for i, size in enumerate(sizes)}
    plan = plan_arena(chain)
    middles = {plan.offsets[name] + chain[name].size_bytes // 2 for name in chain}
    assert len(middles) == 2
    assert plan.bytes == max(a + b for a, b in pairwise(sizes))


class Counted(Lifetime):
    """Counts how often its fields are read."""

    reads = 0

    def __getattribute__(self, name: str) -> object:
        Counted.reads += name in ("first", "last")
        return super().__getattribute__(name)


def test_the_work_does_not_grow_with_all_pairs() -> None:
    Counted.reads = 0
    plan_arena({str(n): Counted(n, n + 2, 640) for n in range(2000)})
    assert Counted.reads < 20 * 2000


def test_values_that_all_live_on_are_seen_together() -> None:
    placed, seen = Placed(901), 0
    for n in range(900):
        mine = Lifetime(n, 900, 640)
        seen = max(seen, len(list(placed.during(mine))))
        placed.add(mine, (640 * n, 640 * n + 640))
    assert 0 < seen < 30


N, M = dim("n", 0, 40), dim("m", 1, 7)
SIZES = st.one_of(
    st.integers(0, 5000),
    st.builds(lambda a, b, c: N * a + M * b + c, *[st.integers(0, 60)] * 3),
    st.builds(lambda a, b: N * M * a + (N + b) // 3 * 8, *[st.integers(0, 9)] * 2),
)
SIZED = st.dictionaries(
    st.integers(0, 30).map(str),
    st.builds(
        lambda first, more, size: Lifetime(first, first + more, size),
        st.integers(0, 12), st.integers(0, 6), SIZES,
    ),
)  # fmt: skip


def size_at(size: Extent, n: int, m: int) -> int:
    return fixed(at(size, {dim: n if dim.name == "n" else m for dim in dims_of([N, M])}))


def offsets_at(plan: ArenaPlan, n: int, m: int) -> list[tuple[int, int]]:
    """The place of each slot, as the code of a call computes it."""
    found: list[tuple[int, int]] = []
    for slot in plan.slots:
        start = max((found[other][1] for other in slot.behind), default=0)
        found.append((start, start + padded(size_at(slot.size_bytes, n, m))))
    return found


@given(SIZED, st.sampled_from([0, 1, 2, 13, 31, 40]), st.integers(1, 7))
def test_values_alive_together_never_share_bytes_at_any_size(
    lifetimes: dict[str, Lifetime], n: int, m: int
) -> None:
    plan = plan_arena(lifetimes)
    if all(isinstance(lifetime.size_bytes, int) for lifetime in lifetimes.values()):
        assert not plan.slots and not plan.numbers
        return
    places = offsets_at(plan, n, m)
    assert sorted(plan.numbers.values()) == list(range(len(lifetimes)))
    for name, mine in lifetimes.items():
        start, end = places[plan.numbers[name]]
        assert end - start == padded(size_at(mine.size_bytes, n, m)) and end <= plan.bytes
        for other, its in lifetimes.items():
            if other != name and mine.overlaps(its):
                low, high = places[plan.numbers[other]]
                assert end <= low or high <= start


@given(SIZED)
def test_a_slot_lies_behind_others_that_are_not_behind_each_other(
    lifetimes: dict[str, Lifetime],
) -> None:
    plan = plan_arena(lifetimes)
    reached: list[set[int]] = []
    for number, slot in enumerate(plan.slots):
        assert all(other < number for other in slot.behind)
        for other in slot.behind:
            assert not any(other in reached[near] for near in slot.behind)
        reached.append(set(slot.behind).union(*(reached[other] for other in slot.behind)))


def test_a_chain_of_sized_values_shares_two_places() -> None:
    chain = {str(i): Lifetime(i, i + 1, N * 64) for i in range(10)}
    plan = plan_arena(chain)
    assert plan.bytes == 2 * 40 * 64
    for n in (0, 1, 13, 40):
        assert max(end for _, end in offsets_at(plan, n, 1)) == 2 * n * 64


def test_the_work_on_sized_values_does_not_grow_with_all_pairs() -> None:
    Counted.reads = 0
    plan = plan_arena({str(n): Counted(n, n + 2, N * 64) for n in range(2000)})
    assert Counted.reads < 40 * 2000
    assert all(len(slot.behind) <= 2 for slot in plan.slots)
