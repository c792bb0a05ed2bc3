from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from ansorpy.errors import MissingDependency
from ansorpy.measure.fleet.reach import reach

SETTINGS = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0])


@contextmanager
def listening(said: bytes | None) -> Iterator[str]:
    """The address of what says that to the first who connects; None: it keeps silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                connection.sendall(said or b"")

        thread = Thread(target=answer) if said is not None else None
        if thread is not None:
            thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        if thread is not None:
            thread.join()


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_what_greets_as_grpc_does_may_be_a_cluster(scheme: str) -> None:
    with listening(SETTINGS + bytes(6)) as address:
        reach(f"{scheme}{address}", 5.0, "")


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 400 Bad Request\r\n"])
def test_another_server_is_said_to_be_none(said: bytes) -> None:
    refused = pytest.raises(MissingDependency, match="(no|is not a) Ray cluster")
    with listening(said) as address, refused as caught:
        reach(f"ray://{address}", 5.0, "see there")
    assert address in str(caught.value) and "hint: see there" in str(caught.value)


def test_what_accepts_connections_and_keeps_silent_is_not_waited_for() -> None:
    refused = pytest.raises(MissingDependency, match="no Ray cluster answers at 127.0.0.1:")
    with listening(None) as address, refused:
        reach(address, 0.1, "")


def test_encrypted_connections_are_left_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with listening(None) as address:
        reach(address, 0.1, "")


def test_an_address_without_a_port_is_left_to_ray() -> None:
    reach("auto", 0.1, "")
