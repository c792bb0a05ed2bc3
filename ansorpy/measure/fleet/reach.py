"""Check whether the server at an address may be a Ray cluster.

Ray itself takes minutes to report that nothing answers, then ends the process; if a server accepts
connections but stays silent, Ray waits forever.
"""

from __future__ import annotations

import socket
import time

from ansorpy.config import ray_uses_tls
from ansorpy.errors import MissingDependency

__all__ = ["reach"]

_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = 4
"""Type of the frame that both sides of an HTTP/2 connection send first (SETTINGS)."""
_FRAME_BYTES = 9
"""Size of a frame header: length (3 bytes), type, flags, stream (4 bytes)."""


def reach(address: str, timeout_s: float, hint: str) -> None:
    """Check that gRPC, which Ray uses, is spoken at *address* (``[ray://]HOST:PORT``).

    With encryption, only the connection is checked.  An address without a port is left to Ray.

    Raises:
        MissingDependency: Nothing answers within *timeout_s*, or it is not a Ray cluster.
    """
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return
    try:
        with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
            is_one = ray_uses_tls() or _speaks_grpc(connection, time.monotonic() + timeout_s)
    except (OSError, ValueError, OverflowError) as error:
        reason = str(error) or type(error).__name__
        raise MissingDependency(
            f"no Ray cluster answers at {address}: {reason}", hint=hint
        ) from None
    if not is_one:
        raise MissingDependency(f"what answers at {address} is not a Ray cluster", hint=hint)


def _speaks_grpc(connection: socket.socket, until: float) -> bool:
    """Whether the peer greets as an HTTP/2 server, as gRPC needs; raises ``TimeoutError``."""
    connection.sendall(_HTTP2 + _frame_head(_SETTINGS))
    head = b""
    while len(head) < _FRAME_BYTES:
        connection.settimeout(max(until - time.monotonic(), 1e-3))
        more = connection.recv(_FRAME_BYTES - len(head))
        if not more:
            return False
        head += more
    return head[3:] == _frame_head(_SETTINGS)[3:]


def _frame_head(kind: int) -> bytes:
    """Header of an empty frame on stream 0, which stands for the connection itself."""
    return bytes([0, 0, 0, kind, 0, 0, 0, 0, 0])
