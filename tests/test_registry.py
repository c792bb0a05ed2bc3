"""Registries: names to parts, lazily loaded, open to scripts, errors that say what is known."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.registry import Registry


@dataclass
class Part:
    """A part with a memory.

    More about it.
    """

    seen: list[int] = field(default_factory=list)


def shapes() -> Registry[Part]:
    return Registry("shape", {"plain": "tests.test_registry:Part"})


def test_a_name_gives_the_class_and_each_call_another_part() -> None:
    make = shapes().factory("plain")
    one, other = make(), make()
    assert isinstance(one, Part)
    assert one is not other


def test_the_description_is_the_first_line() -> None:
    assert shapes().descriptions() == {"plain": "A part with a memory."}


def test_an_unknown_name_says_what_is_known() -> None:
    with pytest.raises(UsageError) as error:
        shapes().factory("palin")
    assert error.value.message == 'unknown shape "palin"'
    assert error.value.hint == "known are plain; a script of your own can register more"


def test_a_script_adds_its_own_once() -> None:
    registry = shapes()

    @registry.register("bent")
    def bent() -> Part:
        """Bent."""
        return Part([1])

    assert registry.names == ("plain", "bent")
    assert repr(registry) == f"<Registry {registry.kind}: plain, bent>"
    assert "bent" in registry
    assert registry.one("bent").seen == [1]
    assert registry.descriptions()["bent"] == "Bent."
    for name in ("bent", "plain"):
        with pytest.raises(UsageError, match=f'there is a shape "{name}" already'):
            registry.register(name)(Part)
    registry.remove("bent")
    assert list(registry) == ["plain"]
    with pytest.raises(UsageError, match='no script registered a shape "plain"'):
        registry.remove("plain")


def test_a_definition_that_runs_again_replaces_itself() -> None:
    registry = shapes()

    def cell(value: int) -> None:
        @registry.register("bent")
        def bent() -> Part:
            return Part([value])

    cell(1)
    cell(2)
    assert registry.one("bent").seen == [2]
    with pytest.raises(UsageError, match='there is a shape "bent" already'):
        registry.register("bent")(lambda: Part([3]))


@pytest.mark.parametrize("choice", ["plain", Part, lambda: Part([1])])
def test_names_and_factories_make_new_parts(choice: str | Callable[[], Part]) -> None:
    assert shapes().one(choice) is not shapes().one(choice)


def test_an_instance_is_taken_as_it_is_or_copied() -> None:
    mine = Part([3])
    assert shapes().one(mine) is mine
    make = shapes().factory(mine)
    make().seen.append(4)
    assert make().seen == mine.seen == [3]
    assert shapes().shared(mine)() is mine


def test_naming_a_part_loads_nothing() -> None:
    code = (
        "import sys; from ansorpy.registry import Registry\n"
        "r = Registry('font', {'a': 'wave:open'})\n"
        "assert 'a' in r and r.names and 'wave' not in sys.modules\n"
        "r.factory('a'); assert 'wave' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Flat(Part):
    """A part that can be flattened."""

    def flatten(self) -> None: ...


@pytest.fixture
def bent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with a part "bent"."""
    folder = tmp_path / "bent-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: bent\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[ansorpy.shape]\nbent = tests.test_registry:Part\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("bent")
def test_an_installed_package_adds_its_own() -> None:
    registry = shapes()
    assert registry.group == "ansorpy.shape"
    assert registry.names == ("plain", "bent") and "bent" in registry
    assert isinstance(registry.one("bent"), Part)


@pytest.mark.usefixtures("bent")
def test_what_a_package_installs_is_checked_as_well() -> None:
    registry: Registry[Flat] = Registry("shape", {}, Flat)
    with pytest.raises(UsageError, match="Part'> is no shape: it has no flatten"):
        registry.factory("bent")
