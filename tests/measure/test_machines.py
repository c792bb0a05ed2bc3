"""Where programs are timed: addresses, and what is said when there is nobody."""

from __future__ import annotations

import socket
import sys

import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.measure.fleet.base import kind_of, offer
from ansorpy.measure.machines import open_machines, ray_address
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.target import Target


@pytest.mark.parametrize(
    ("workers", "address"),
    [
        ("ray", "auto"),
        ("ray://auto", "auto"),
        ("ray://", "auto"),
        ("ray://local", "local"),
        ("ray://head.lab:10001", "ray://head.lab:10001"),
        ("192.0.2.7:6379", "192.0.2.7:6379"),
    ],
)
def test_addresses_are_those_of_ray(workers, address):
    assert ray_address(workers) == address


@pytest.mark.parametrize(
    "workers", ["", "cloud", "ssh://a:1", "ray://head", "head:port", "://a:1", "head:65536"]
)
def test_what_is_no_address_is_refused(workers):
    with pytest.raises(UsageError, match="is not an address"):
        open_machines(workers, MeasureOptions(), Target.host())


def test_this_machine_is_the_default():
    with open_machines("local", MeasureOptions(), Target.host()) as runner:
        assert isinstance(runner, LocalRunner)


def test_gpus_of_a_cluster_are_refused():
    with pytest.raises(UsageError, match="a cluster's GPUs cannot be used"):
        open_machines("ray://head:10001", MeasureOptions(), Target.parse("sm_90"))


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"pip install 'ansorpy\[ray\]'") as raised:
        open_machines("ray://head:10001", MeasureOptions(), Target.host())
    assert raised.value.exit_code == 5


@pytest.mark.parametrize("scheme", ["ray://", ""])
def test_an_address_where_nobody_listens_is_said_at_once(scheme):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(MissingDependency, match=f"no Ray cluster answers at {address}"):
            open_machines(address, MeasureOptions(), Target.host())


def test_a_machine_is_known_by_its_processor_and_others_by_name():
    host = Target.host()
    assert kind_of(host) == f"ansorpy_{host.cpu}"
    assert kind_of(Target.parse("x86-64-v3")) == "ansorpy_x86-64-v3"
    assert offer(3) == {kind_of(host): 3}
