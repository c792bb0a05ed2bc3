"""A search over two Ray nodes on this machine, one of which hangs and one is killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import ansorpy
from ansorpy.api.request import Request
from ansorpy.api.tuner import open_tuner
from ansorpy.cli.main import main
from ansorpy.ir.task import Task
from ansorpy.measure.fleet.base import BUILDER, kind_of
from ansorpy.measure.fleet.patience import Patience
from ansorpy.measure.fleet.ray_cluster import RayFleet, connect
from ansorpy.measure.fleet.runner import FleetRunner
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.search.events import Event, Progress
from ansorpy.target import Target
from tests.measure.definitions import matmul, tiled
from tests.measure.run.test_runner import started_by

pytestmark = pytest.mark.timeout(240)

ROOT = str(Path(ansorpy.__file__).parents[1])
KIND = kind_of(Target.host())
TASK = Task(matmul(61, 48, 37), Target.host(), 1, name="mm")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder whose path leaves room for the names of Ray's sockets."""
    path = Path(tempfile.mkdtemp(prefix="ar", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Any]:
    """A head with a client port, and one more node; this process is connected.

    Both time tasks of one thread; those of two threads the head builds and the other times.  The
    other's id is the first, so its times are those that count.
    """
    settings = {
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        # Ray notices within a second, not 14, that a node is gone.
        "RAY_health_check_period_ms": "300",
        # gRPC's handlers of forks break the channel to the server that a fork becomes, which a
        # client then waits for in vain for 30 s.
        "GRPC_ENABLE_FORK_SUPPORT": "0",
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
        ports = {"ray_client_server_port": port, "no_monitor": True, "include_log_monitor": False}
        cluster.builder = add_node(cluster, {KIND: 1, BUILDER: 1}, **ports)
        cluster.client_port = port
        with patch.context() as first:
            first.setenv("RAY_OVERRIDE_NODE_ID_FOR_TESTING", "00" * 27 + "01")
            cluster.timer = add_node(cluster, {KIND: 2}, wait=False)
        try:
            ray.init(cluster.address, log_to_driver=False, logging_level="CRITICAL")
            cluster.wait_for_nodes()
            yield cluster
        finally:
            ray.shutdown()
            for node in cluster.list_all_nodes():
                with suppress(OSError):  # the one that a test has killed
                    kill(node)
            cluster.shutdown()
    deadline = time.monotonic() + 30.0
    # Workers of this process may rest until another test wakes them.
    while left := started_by(folder) - started_by(folder, parent=os.getpid()):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def add_node(cluster: Any, resources: dict[str, int], **settings: object) -> Any:
    """One more node of *cluster*, with what every node here has."""
    return cluster.add_node(
        num_cpus=0,
        object_store_memory=80 << 20,
        include_dashboard=False,
        resources=resources,
        **settings,
    )


# Six programs timed for so long take longer than a node's time to answer, below.
POLICY = TimingPolicy(total_s=0.25, max_samples=1 << 20, rounds=3)
OPTIONS = MeasureOptions(builders=1, policy=POLICY)


@pytest.fixture(scope="module")
def fleet(cluster: Any) -> Iterator[RayFleet]:
    """What builds and times on both nodes."""
    fleet = connect("auto", OPTIONS)
    yield fleet
    fleet.close()


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(sql).fetchall()


def test_a_node_may_build_for_those_that_time(cluster: Any, fleet: RayFleet) -> None:
    timer, builder = cluster.timer.node_id, cluster.builder.node_id
    wide, states = Task(TASK.dag, TASK.target, 2), [tiled(TASK.dag, n) for n in (2, 4)]
    runner = FleetRunner(fleet, OPTIONS, Patience(rejoin_s=0.0))
    assert (fleet.nodes(wide), fleet.builders(wide)) == ([timer], [builder])
    assert all(result.ok for result in runner.measure(wide, states, incumbent_s=None))
    results = runner.retime(wide, states)
    assert results is not None and [len(result.seconds) for result in results] == [3, 3]


def test_a_node_that_hangs_is_set_aside(
    cluster: Any, fleet: RayFleet, caplog: pytest.LogCaptureFixture
) -> None:
    hung = cluster.builder
    [actor] = [pid for pid in children(raylet(hung)) if b"NodeService" in command(pid)]
    runner = FleetRunner(fleet, OPTIONS, Patience(rejoin_s=0.0, grace_s=1.0))
    os.kill(actor, signal.SIGSTOP)
    try:
        states = [tiled(TASK.dag, n) for n in range(2, 8)]
        assert all(result.ok for result in runner.measure(TASK, states, incumbent_s=None))
        assert "is set aside: no answer within" in caplog.text and hung.node_id[:8] in caplog.text
    finally:
        with suppress(ProcessLookupError):  # Ray may have ended it
            os.kill(actor, signal.SIGCONT)


def test_a_search_outlives_the_loss_of_a_node(cluster: Any, tmp_path: Path) -> None:
    home, db = cluster.timer, tmp_path / "t.db"
    assert home.node_id < cluster.builder.node_id, "the first is the home node"
    killed: list[str] = []
    heard: list[int] = []

    def listener(progress: Event) -> None:
        assert isinstance(progress, Progress)
        heard.append(progress.total_trials)
        if progress.total_trials >= 2 and not killed:
            # The node whose times count, with no chance to say good-bye.
            kill(home)
            killed.append(home.node_id)

    request = Request.of(
        network=False, effort="none", trials=8, threads=1, db=db, workers="ray", listener=listener
    )
    with open_tuner(request) as tuner:
        tuning = tuner.tune({TASK: 1.0})
        best = tuner.database.best(TASK.key)
        assert best is not None and best.median_s is not None
        assert tuner.runner.built(best.object_digest) is not None
    assert tuning is not None and not tuning.interrupted
    assert killed == [home.node_id]
    [outcome] = tuning.outcomes
    assert outcome.history.trials == 8 == max(heard)
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    counts = "SELECT attempts, count(*), count(DISTINCT digest) FROM trials GROUP BY attempts"
    assert rows(db, counts) == [(1, 8, 8)]
    assert rows(db, "SELECT count(DISTINCT trial) FROM results") == [(8,)]
    assert rows(db, "SELECT reason FROM results WHERE kind = 'crash'") == []


def test_the_command_line_reaches_a_cluster_from_outside(
    cluster: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import ray

    info = helper.make_tensor_value_info
    x, y = (info(name, TensorProto.FLOAT, [33, 21]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "net", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.save(model, tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    ray.shutdown()  # this process comes from outside: no test of this module may follow
    command = [
        "tune", "net.onnx", "--db", "t.db", "--trials", "2", "--threads", "1",
        "--workers", f"ray://127.0.0.1:{cluster.client_port}",
    ]  # fmt: skip
    assert main(command) == 0
    assert "tuned 1 tasks" in capsys.readouterr().out
    assert not ray.is_initialized(), "the command has left the cluster"
    assert rows(tmp_path / "t.db", "SELECT count(DISTINCT trial) FROM results") == [(2,)]


def raylet(node: Any) -> int:
    """The process that stands for *node*."""
    [found] = [p for kind, group in node.all_processes.items() if kind == "raylet" for p in group]
    return int(found.process.pid)


def kill(node: Any) -> None:
    """What the power switch does to *node*: its raylet and all that this started, at once."""
    for pid in (raylet(node), *children(raylet(node))):
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(number) for number in text.split()]


def command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
