"""Check whether the server at an address may be a Ray cluster.

Ray itself takes minutes to report that nothing answers, then ends the process; if a server accepts
connections but stays silent, Ray waits forever.
"""

from __future__ import annotations

import socket

from ansorpy.config import ray_uses_tls
from ansorpy.errors import MissingDependency

__all__ = ["reach"]


def reach(address: str, timeout_s: float, hint: str) -> None:
    """Check that gRPC, which Ray uses, is spoken at *address* (``[ray://]HOST:PORT``).

    With encryption, only the connection is checked.  An address without a port is left to Ray.

    Raises:
        MissingDependency: Nothing answers within *timeout_s*, or it is not a Ray cluster.
    """
    server = address.removeprefix("ray://")
    host, separator, port = server.rpartition(":")
    if not separator:
        return
    try:
        socket.create_connection((host, int(port)), timeout=timeout_s).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = str(error) or type(error).__name__
        raise MissingDependency(
            f"no Ray cluster answers at {address}: {reason}", hint=hint
        ) from None
    if not (ray_uses_tls() or _speaks_grpc(server, timeout_s)):
        raise MissingDependency(f"what answers at {address} is not a Ray cluster", hint=hint)


def _speaks_grpc(server: str, timeout_s: float) -> bool:
    """Whether the server completes the handshake of gRPC, which comes with Ray's client."""
    import grpc

    # Ray does not use a proxy either.
    with grpc.insecure_channel(server, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=timeout_s)
        except grpc.FutureTimeoutError:
            return False
    return True
