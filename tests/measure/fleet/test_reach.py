"""What answers at an address is tried before Ray is, which would wait for ever."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import grpc
import pytest

from ansorpy.errors import MissingDependency
from ansorpy.measure.fleet.reach import reach


@contextmanager
def listening(said: bytes | None) -> Iterator[str]:
    """The address of what says that to each who connects; None: it keeps silent."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            while said is None and self.request.recv(64):
                pass
            self.request.sendall(said or b"")

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_what_speaks_grpc_may_be_a_cluster(scheme: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            reach(f"{scheme}127.0.0.1:{port}", 60.0, "")
        finally:
            server.stop(None).wait()


@pytest.mark.parametrize(
    "said", [None, b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 400 Bad Request\r\n"]
)
def test_another_server_is_said_to_be_none(said: bytes | None) -> None:
    refused = pytest.raises(MissingDependency, match="is not a Ray cluster")
    with listening(said) as address, refused as caught:
        reach(f"ray://{address}", 0.2, "see there")
    assert address in str(caught.value) and "hint: see there" in str(caught.value)


def test_where_nobody_listens_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(MissingDependency, match=f"no Ray cluster answers at {address}"):
            reach(address, 60.0, "")


def test_encrypted_connections_are_left_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with listening(None) as address:
        reach(address, 0.1, "")


def test_an_address_without_a_port_is_left_to_ray() -> None:
    reach("auto", 0.1, "")
