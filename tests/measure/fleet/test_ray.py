"""A search over two Ray nodes on this machine, one of which is killed in the middle."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ansorpy
from ansorpy.api.request import Request
from ansorpy.api.session import open_session
from ansorpy.ir.task import Task
from ansorpy.measure.fleet.base import kind_of
from ansorpy.search.events import Progress
from ansorpy.target import Target
from tests.measure.definitions import matmul
from tests.measure.test_runner import started_by

pytestmark = pytest.mark.timeout(240)

ROOT = str(Path(ansorpy.__file__).parents[1])
KIND = kind_of(Target.host())
TASK = Task(matmul(61, 48, 37), Target.host(), 1, name="mm")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder whose path leaves room for the names of Ray's sockets."""
    path = Path(tempfile.mkdtemp(prefix="ar"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Any]:
    """A head that times nothing, with a client port; this process is connected to it."""
    settings = {
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "PYTHONPATH": ROOT,
        "TMPDIR": str(folder),
        "ANSORPY_TEST_RUN": str(folder),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        import ray
        from ray.cluster_utils import Cluster

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cluster = Cluster()
        add_node(cluster, ray_client_server_port=port)
        cluster.client_port = port
        try:
            ray.init(cluster.address, log_to_driver=False, logging_level="CRITICAL")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
    deadline = time.monotonic() + 30.0
    while left := started_by(folder):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def add_node(cluster: Any, **settings: object) -> Any:
    """One more node of *cluster*, with what every node here has."""
    return cluster.add_node(
        num_cpus=1, object_store_memory=80 << 20, include_dashboard=False, **settings
    )


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(sql).fetchall()


def test_a_search_outlives_the_loss_of_a_node(cluster: Any, tmp_path: Path) -> None:
    nodes = {node.node_id: node for node in (add_node(cluster, resources={KIND: 2}),) * 1}
    second = add_node(cluster, resources={KIND: 2})
    nodes[second.node_id] = second
    home = min(nodes)
    db = tmp_path / "t.db"
    heard: list[int] = []

    def listener(progress: Progress) -> None:
        heard.append(progress.total_trials)
        if progress.total_trials >= 8 and nodes:
            # The node whose times count, with no chance to say good-bye.
            os.kill(raylet_pid(nodes[home]), signal.SIGKILL)
            nodes.clear()

    request = Request(effort="none", trials=24, threads=1, db=db, workers="ray", listener=listener)
    with open_session(request) as session:
        tuning = session.tune({TASK: 1.0}, network=False)
        [chosen] = session.choose([TASK])
    assert tuning is not None and not tuning.interrupted and not nodes
    [outcome] = tuning.outcomes
    assert outcome.history.trials == 24 and max(heard) == 24
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    assert rows(db, "SELECT status, attempts, count(*) FROM trials GROUP BY 1, 2") == [
        ("done", 1, 24)
    ]
    assert rows(db, "SELECT DISTINCT kind FROM trials WHERE kind NOT IN ('ok', 'slow')") == []
    assert rows(db, "SELECT count(DISTINCT digest) FROM trials") == [(24,)]
    assert chosen.median_s is not None and chosen.built.digest


def raylet_pid(node: Any) -> int:
    [raylet] = [p for kind, group in node.all_processes.items() if kind == "raylet" for p in group]
    return int(raylet.process.pid)
