from __future__ import annotations

from ansorpy.measure.recent import Recent


def test_the_oldest_is_forgotten_and_putting_again_makes_young() -> None:
    recent = Recent[int, str](3)
    for key in (1, 2, 3, 1, 4):
        recent.put(key, f"value {key}")
    assert [recent.get(key) for key in (1, 2, 3, 4)] == ["value 1", None, "value 3", "value 4"]
    recent.put(4, "another")
    assert recent.get(4) == "another" and recent.get(3) == "value 3"


def test_nothing_is_held_where_there_is_no_room() -> None:
    recent = Recent[int, str](0)
    recent.put(1, "value")
    assert recent.get(1) is None
