"""Whatever Ray raises becomes a lost node or one plain message; a stand-in for Ray raises it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.fleet.base import NodeLost, kind_of
from ansorpy.measure.fleet.ray_cluster import RayFleet, connect
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.target import Target
from tests.measure.definitions import matmul, task_of

TASK = task_of(matmul())
NODE = "ab" * 28


class RayError(Exception):
    """Base of Ray's own."""


class RayTaskError(RayError):
    """The code of an actor raised."""


class LocalRayletDiedError(RayError):
    """This machine is no node any more."""


class AuthenticationError(RayError):
    """The token is wrong."""


class ActorDiedError(RayError):
    """The actor is gone."""


class FakeRay(SimpleNamespace):
    """As much of Ray as a fleet uses: one node; *fails* is called by all that asks the cluster."""

    def __init__(self, fails: Callable[[str], None] = lambda what: None) -> None:
        super().__init__()
        kinds = (RayError, RayTaskError, LocalRayletDiedError, AuthenticationError)
        self.exceptions = SimpleNamespace(**{kind.__name__: kind for kind in kinds})
        self.fails = fails
        self.connected = False
        self.answer: object = b"answer"
        self.addresses: list[str] = []

    def is_initialized(self) -> bool:
        return self.connected

    def init(self, address: str, **settings: object) -> None:
        self.addresses.append(address)
        self.fails("init")
        self.connected = True

    def nodes(self) -> list[dict[str, Any]]:
        self.fails("nodes")
        offer = {kind_of(Target.host()): 2.0}
        known = {"NodeID": NODE, "NodeManagerHostname": "pi", "Resources": offer}
        return [{**known, "Alive": True}, {**known, "NodeID": "cd" * 28, "Alive": False}]

    def wait(self, tickets: list[object], **settings: object) -> tuple[list[object], list[object]]:
        self.fails("wait")
        return tickets[:1], tickets[1:]

    def get(self, ticket: object) -> object:
        self.fails("get")
        return self.answer

    def remote(self, **settings: object) -> Callable[[type], object]:
        """A decorator; what it makes of a class starts actors, whose answers are tickets."""
        actor = SimpleNamespace(measure=SimpleNamespace(remote=lambda message: "ticket"))
        made = SimpleNamespace(remote=lambda options: actor)
        return lambda service: SimpleNamespace(options=lambda **settings: made)

    def kill(self, actor: object, **settings: object) -> None:
        self.fails("kill")

    def shutdown(self) -> None:
        self.fails("shutdown")


def fails_at(where: str, error: Exception) -> Callable[[str], None]:
    def fails(what: str) -> None:
        if what == where:
            raise error

    return fails


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return fake


@pytest.fixture
def fleet(ray: FakeRay) -> RayFleet:
    """One whose node has an actor."""
    fleet = connect("auto", MeasureOptions())
    assert fleet.call(NODE, "measure", b"work") == "ticket"
    return fleet


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (ConnectionError("Could not find any running Ray instance."), "how to start one"),
        (RuntimeError("Version mismatch: ray 2.1\nhere 2.2"), "how to start one"),
        (ValueError("bad address"), "how to start one"),
        (Exception("ray client is confused"), "how to start one"),
        (AuthenticationError("no token"), "copy ~/.ray/auth_token"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_said_plainly(ray, error, hint):
    ray.fails = fails_at("init", error)
    with pytest.raises(MissingDependency, match="the Ray cluster at local cannot be") as raised:
        connect("local", MeasureOptions())
    assert raised.value.exit_code == 5 and hint in str(raised.value.hint)
    assert str(error).splitlines()[0] in raised.value.message
    assert "\n" not in raised.value.message


def test_a_machine_without_a_cluster_is_said_plainly(ray):
    ray.fails = fails_at("init", ConnectionError("Could not find any running Ray instance."))
    with pytest.raises(MissingDependency, match="this machine is not a node of a Ray cluster"):
        connect("auto", MeasureOptions())


def test_a_defect_is_not_taken_for_a_missing_cluster(ray):
    ray.fails = fails_at("init", TypeError("no such argument"))
    with pytest.raises(TypeError):
        connect("auto", MeasureOptions())


def test_the_environment_names_the_cluster(ray, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert connect("auto", MeasureOptions()).address == "local" and ray.addresses == ["local"]
    with pytest.raises(UsageError, match="is connected to a Ray cluster already"):
        connect("local", MeasureOptions())


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "ray://127.0.0.1:1"])
def test_an_address_from_the_environment_is_tried_first(ray, monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(MissingDependency, match=f"no Ray cluster answers at {address}"):
        connect("auto", MeasureOptions())
    assert not ray.addresses


LOST: list[tuple[str, Callable[[RayFleet], object]]] = [
    ("nodes", lambda fleet: fleet.nodes(TASK)),
    ("nodes", lambda fleet: fleet.builders(TASK)),
    ("nodes", lambda fleet: fleet.offers()),
    ("wait", lambda fleet: fleet.wait(["ticket"], 0.0)),
    ("get", lambda fleet: fleet.take("ticket")),
]


@pytest.mark.parametrize(("where", "call"), LOST)
@pytest.mark.parametrize(
    "error",
    [ConnectionError("gone\nand\ngone for good"), Exception("Ray Client is not connected.")],
)
def test_a_cluster_that_is_lost_is_one_plain_message(ray, fleet, where, call, error):
    ray.fails = fails_at(where, error)
    with pytest.raises(MissingDependency, match="the Ray cluster at auto no longer answers: ") as e:
        call(fleet)
    assert "\n" not in e.value.message and e.value.hint and e.value.exit_code == 5


@pytest.mark.parametrize("call", [call for _, call in LOST])
def test_without_a_connection_ray_is_asked_nothing(ray, fleet, call):
    ray.connected = False
    ray.fails = lambda what: pytest.fail("it would start a cluster of its own")
    with pytest.raises(MissingDependency, match="no longer answers"):
        call(fleet)
    fleet.close()


def test_ending_what_is_out_of_reach_ends_quietly(ray, fleet):
    asked = []

    def fails(what: str) -> None:
        asked.append(what)
        raise ConnectionError(what)

    ray.fails = fails
    fleet.drop(NODE)
    fleet.drop(NODE)
    assert asked == ["kill"], "the second time there is no actor"
    fleet.close()


def test_an_answer_that_will_not_come_is_a_lost_node(ray, fleet):
    ray.fails = fails_at("get", ActorDiedError("The actor died.\n...\nIts node is gone."))
    with pytest.raises(NodeLost, match=r"^The actor died\. Its node is gone\.$"):
        fleet.take("ticket")
    ray.fails = fails_at("get", LocalRayletDiedError("raylet"))
    with pytest.raises(MissingDependency):
        fleet.take("ticket")
    ray.fails = fails_at("get", RayTaskError("a defect"))
    with pytest.raises(RayTaskError):
        fleet.take("ticket")
    ray.fails, ray.answer = (lambda what: None), {"junk": 1}
    with pytest.raises(NodeLost, match="dict instead of bytes"):
        fleet.take("ticket")


def test_nodes_are_those_alive_and_known_to_people_by_host(fleet):
    assert fleet.nodes(TASK) == [NODE] and fleet.place(NODE) == "pi (abababab)"
    assert fleet.nodes(Task(TASK.dag, Target.host(), 3)) == []
    assert fleet.place("unheard of") == "unheard of"
    assert fleet.call(NODE, "measure", b"work") == "ticket" and fleet.take("ticket") == b"answer"
