"""A fleet made of a Ray cluster's nodes, with one actor on each.

Ray starts actors, calls their methods and detects losses; what they take and return is JSON in
bytes, so no object of ours or of the user's ``__main__`` is pickled.  A node takes part if it was
started with a resource named after what it can time
(:func:`~ansorpy.measure.fleet.base.kind_of`) whose amount is the maximum number of threads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ansorpy.config import available_cores, ray_cluster
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.fleet.base import BUILDER, PREFIX, NodeLost, Ticket, kind_of, offer
from ansorpy.measure.fleet.node import NodeService, options_to_json
from ansorpy.measure.fleet.reach import reach
from ansorpy.measure.run.runner import MeasureOptions

__all__ = ["RayFleet", "connect"]

_REACH_S = 10.0
_TRIES = 3
_START = "docs/guides/workers.md says how to start one"


class RayFleet:
    """The nodes of the cluster this process is connected to; *own*: :meth:`close` disconnects."""

    def __init__(self, address: str, options: MeasureOptions, *, own: bool) -> None:
        self.address = address
        self._ray = _ray()
        self._options = options_to_json(options)
        self._own = own
        self._actors: dict[str, Any] = {}
        self._places: dict[str, str] = {}

    def nodes(self, task: Task) -> list[str]:
        """Ids of the nodes that offer the task's kind with enough threads."""
        return self._offering(kind_of(task.target), task.threads)

    def builders(self, task: Task) -> list[str]:
        """Ids of the nodes that offer to build, except those that time *task*."""
        return sorted(set(self._offering(BUILDER, 0)) - set(self.nodes(task)))

    def call(self, node: str, method: str, *message: bytes) -> Ticket:
        """Call *method* of the actor on *node*, starting it first if there is none."""
        with self._talking():
            if node not in self._actors:
                self._actors[node] = self._start(node)
            ticket: Ticket = getattr(self._actors[node], method).remote(*message)
        return ticket

    def wait(self, tickets: Sequence[Ticket], timeout_s: float) -> list[Ticket]:
        """Wait at most *timeout_s*; returns those of *tickets* that are done."""
        with self._talking():
            ready, _ = self._ray.wait(list(tickets), num_returns=1, timeout=timeout_s)
        return list(ready)

    def take(self, ticket: Ticket) -> bytes:
        """Return the answer; Ray errors that mean there is none become :class:`NodeLost`."""
        ray = self._ray.exceptions
        with self._talking():
            try:
                answer = self._ray.get(ticket)
            except (ray.RayTaskError, ray.LocalRayletDiedError):
                # Either the service itself failed, which is our bug and must stay visible, or the
                # machine that proxies for this driver left the cluster, which is no node's fault.
                raise
            except ray.RayError as error:
                raise NodeLost(_first_and_last(error)) from None
        if not isinstance(answer, bytes):
            raise NodeLost(f"it answered {type(answer).__name__} instead of bytes")
        return answer

    def drop(self, node: str) -> None:
        """End the actor of *node*, if there is one."""
        actor = self._actors.pop(node, None)
        if actor is not None:
            with suppress(MissingDependency), self._talking():
                self._ray.kill(actor, no_restart=True)

    def place(self, node: str) -> str:
        """The host name of *node* and the start of its id."""
        return self._places.get(node, node)

    def offers(self) -> str:
        """Each kind with the threads offered, once per node."""
        found = sorted(
            f"{name} ({amount:g} threads)"
            for node in self._living()
            for name, amount in node["Resources"].items()
            if name.startswith(PREFIX)
        )
        return ", ".join(found) or "nothing"

    def close(self) -> None:
        """End all actors, and the connection if this fleet owns it."""
        for node in list(self._actors):
            self.drop(node)
        if self._own:
            with suppress(MissingDependency), self._talking():
                self._ray.shutdown()

    def _offering(self, kind: str, least: int) -> list[str]:
        return sorted(
            node["NodeID"] for node in self._living() if node["Resources"].get(kind, -1) >= least
        )

    def _living(self) -> list[dict[str, Any]]:
        with self._talking():
            living = [node for node in self._ray.nodes() if node["Alive"]]
        for node in living:
            node_id = node["NodeID"]
            self._places[node_id] = f"{node['NodeManagerHostname']} ({node_id[:8]})"
        return living

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Convert the errors Ray raises for an unreachable cluster into one exception."""
        try:
            if not self._ray.is_initialized():
                # Ray would otherwise start or join another cluster by itself.
                raise ConnectionError("the connection to it has ended")
            yield
        except Exception as error:
            if not _is_out_of_reach(self._ray, error):
                raise
            raise MissingDependency(
                f"the Ray cluster at {self.address} no longer answers: {_first_and_last(error)}",
                hint="see to its head node and run the same again: records in a database are kept",
            ) from None

    def _start(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        placed = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        service = self._ray.remote(num_cpus=0, max_restarts=0)(NodeService)
        return service.options(scheduling_strategy=placed).remote(self._options)


def connect(address: str, options: MeasureOptions) -> RayFleet:
    """Join the cluster at *address* and pass *options* to its nodes.

    ``local`` starts Ray on this machine alone; ``auto`` uses the cluster that ``RAY_ADDRESS``
    names or that this machine is a node of, or the one the process is already connected to.

    Raises:
        MissingDependency: Ray is not installed, or the cluster at *address* cannot be joined.
        UsageError: The process is connected to another cluster.
    """
    ray = _ray()
    if ray.is_initialized():
        if address != "auto":
            raise UsageError(
                f"this process is connected to a Ray cluster already, not to {address}",
                hint="say ray://auto, or call ray.shutdown() first",
            )
        return RayFleet(address, options, own=False)
    if address == "auto":
        address = ray_cluster() or address
    logging.getLogger("ray").setLevel(logging.ERROR)
    reach(address, _REACH_S, _START)
    try:
        _join(ray, address)
    except Exception as error:
        if not (_is_out_of_reach(ray, error) or isinstance(error, ValueError)):
            raise
        raise _not_joined(ray, address, error) from None
    return RayFleet(address, options, own=True)


def _not_joined(ray: Any, address: str, error: Exception) -> MissingDependency:
    """Error for a cluster that cannot be used, or for no cluster on this machine."""
    what, hint = f"the Ray cluster at {address} cannot be joined", _START
    if address == "auto" and isinstance(error, ConnectionError):
        what = "this machine is not a node of a Ray cluster, and RAY_ADDRESS names none"
        return MissingDependency(what, hint=hint)
    if isinstance(error, ray.exceptions.AuthenticationError):
        hint = "copy ~/.ray/auth_token of its head to this machine and to every node"
    return MissingDependency(f"{what}: {_first_and_last(error)}", hint=hint)


def _join(ray: Any, address: str) -> None:
    """Call ``ray.init``, with retries: a busy cluster may be slow to start its client server."""
    for left in reversed(range(_TRIES)):
        try:
            ray.init(address, log_to_driver=False, **_settings(address))
        except ConnectionAbortedError:
            if not left:
                raise
        else:
            return


def _settings(address: str) -> dict[str, Any]:
    """Further arguments of ``ray.init``; none where another process sets up the driver."""
    if address.startswith("ray://"):
        return {}
    quiet = {"logging_level": "ERROR", "include_dashboard": False, "configure_logging": False}
    if address != "local":
        return quiet
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return {**quiet, "resources": offer(available_cores())}


def _is_out_of_reach(ray: Any, error: Exception) -> bool:
    """Return whether *error* means that there is no cluster, or no connection to it.

    Ray's client raises plain ``Exception`` for some of these cases and several types for others.
    """
    if isinstance(error, ray.exceptions.RayTaskError):
        return False
    kinds = (OSError, RuntimeError, ray.exceptions.RayError)
    return type(error) is Exception or isinstance(error, kinds)


def _first_and_last(error: Exception) -> str:
    """First and last line: what happened and its cause; between them Ray puts a traceback."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"


def _ray() -> Any:
    """Import Ray, which takes half a second; nothing else in ansorpy loads it."""
    try:
        import ray
    except ImportError:
        raise MissingDependency(
            "measuring on other machines needs Ray", hint="pip install 'ansorpy[ray]'"
        ) from None
    return ray
