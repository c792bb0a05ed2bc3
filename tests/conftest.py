"""Fixtures and options every test folder shares: golden files, the seed, markers for hardware."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import gc
import importlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from ansorpy.api.sized import task_group
from ansorpy.config import available_cores
from ansorpy.evaluation.bench.turns import Policy
from ansorpy.measure.run import runner
from ansorpy.search.strategies.evolution import Evolution, PredictOptions
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategies.sampling import Sampling
from tests.budget import explores
from tests.search.small import DRAWING, EVOLUTION, PREDICTION, RANKED_SAMPLING
from tests.waiting import Clock

os.environ.setdefault("ANSORPY_VERIFY", "1")
os.environ.setdefault("ANSORPY_CALIBRATE", "0")

# Before the test modules are imported: no test may write into the user's cache.
_CACHE = Path(tempfile.mkdtemp(prefix="ansorpy-"))
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ["ANSORPY_CACHE"] = str(_CACHE)
os.environ["ANSORPY_STATE"] = str(_CACHE / "state")
os.environ["ANSORPY_DB"] = str(_CACHE / "imports.db")
_DATABASES = str(_CACHE / "databases")
os.mkdir(_DATABASES)

if "PYTEST_XDIST_WORKER" in os.environ:
    # Test processes share the cores: threads that wait shall sleep rather than spin, and no process
    # waits for another one's locks on cores, which are temporary files.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ["TMPDIR"] = tempfile.tempdir = str(_CACHE)
    # A search starts one builder, which takes a second.
    pytest.MonkeyPatch().setattr(runner, "available_cores", lambda: 1)

GOLDEN = Path(__file__).parent / "golden"

# The same examples in every run; ``--hypothesis-profile=explore`` draws others and prints its seed.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=20)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files, printing each diff"
    )
    parser.addoption(
        "--emulated", action="store_true", help="also run code for other machines under qemu-user"
    )
    parser.addoption("--seed", type=int, default=None, help="seed of the rng fixture")


def session_seed(config: pytest.Config) -> int:
    """--seed, else ANSORPY_SEED, else 0: a plain run is reproducible."""
    asked = config.getoption("--seed")
    return int(os.environ.get("ANSORPY_SEED", "0")) if asked is None else int(asked)


def pytest_report_header(config: pytest.Config) -> str:
    return f"ansorpy seed: {session_seed(config)} (change it with --seed N)"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Processes of ``make test``, of which some wait for workers, Ray or NVRTC at any time.

    pytest-xdist does not look at the cgroup's quota.
    """
    return min(available_cores() + 1, 8)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--emulated"):
        unasked = pytest.mark.skip(reason="runs with --emulated")
        for item in items:
            if item.get_closest_marker("emulated"):
                item.add_marker(unasked)
    if shutil.which("nvidia-smi"):
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(skip)


def pytest_collection(session: pytest.Session) -> None:
    """What thousands of tests are made of lives to the end: the garbage collector may skip it.

    Hypothesis would read the numbers in all modules that are loaded, for seconds, and draw from
    them.  That is left to those who explore: the same examples are drawn, whatever was loaded.
    """
    gc.disable()
    if not explores():
        name = "_get_local_constants"
        pytest.MonkeyPatch().setattr(providers, name, lambda: providers._local_constants)
    if given := getattr(session.config, "workerinput", None):
        worker = int(given["workerid"].removeprefix("gw"))
        _import_a_part(session.config.args, worker, int(given["workercount"]))


def _import_a_part(folders: list[str], worker: int, workers: int) -> None:
    """Each process imports other tests first, and finds the others' compiled ones after that.

    Where none are compiled yet, that takes as long as all the rest of the collection.
    """
    tests = Path(__file__).parent
    found = {p for folder in folders for p in Path(folder).resolve().rglob("test_*.py")}
    paths = sorted(p for p in found if p.is_relative_to(tests))
    for path in paths[len(paths) * worker // workers : len(paths) * (worker + 1) // workers]:
        module = ".".join(path.with_suffix("").relative_to(tests.parent).parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # which the collection reports
            importlib.import_module(module)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Tests have one environment, so that a worker process can serve one after another."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the session's seed and the test's name."""
    name = list(request.node.nodeid.encode())
    return np.random.default_rng([session_seed(request.config), *name])


@pytest.fixture(autouse=True)
def own_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a default database of its own, in one place: workers know the environment."""
    for name in os.listdir(_DATABASES):
        os.unlink(os.path.join(_DATABASES, name))
    monkeypatch.setenv("ANSORPY_DB", os.path.join(_DATABASES, "test.db"))


@pytest.fixture(autouse=True, scope="module")
def small_population(request: pytest.FixtureRequest) -> Iterator[None]:
    """Searches compare fewer candidates, for tests of what happens around them.

    Those of a module's fixtures do, too.
    """
    if request.node.get_closest_marker("whole_search"):
        yield
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_parts = (
            (Evolution, EVOLUTION), (Sampling, RANKED_SAMPLING), (RandomSearch, DRAWING),
            (PredictOptions, PREDICTION),
        )  # fmt: skip
        for part, settings_of in small_parts:
            small = partialmethod(part.__init__, **settings_of.keywords)
            monkeypatch.setattr(part, "__init__", small)
        yield


@pytest.fixture
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes stand for all, at which a definition is tuned or predicted."""
    monkeypatch.setattr(task_group, "MOST_SIZES", 2)


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines are compared in two short bursts instead of until their medians settle."""
    short = partialmethod(
        Policy.__init__, burst_s=0.02, untimed_s=0.0, least_calls=2, rounds=(1, 2)
    )
    monkeypatch.setattr(Policy, "__init__", short)  # modules have imported the class


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises here, though a shell may have started us in the background, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of ``time.monotonic`` and ``time.sleep``: what meets a deadline never differs."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """``golden(text)`` compares *text* with ``tests/golden/<module>/<test>.txt``.

    A second call in one test compares with ``<test>.2.txt``, and so on.
    """
    path = Path(str(request.node.fspath)).relative_to(Path(__file__).parent).with_suffix("")
    folder = GOLDEN / path
    name = "".join(c if c.isalnum() or c in "_-" else "_" for c in request.node.name).strip("_")
    calls = 0

    def check(text: str) -> None:
        nonlocal calls
        calls += 1
        file = folder / (f"{name}.txt" if calls == 1 else f"{name}.{calls}.txt")
        compare_golden(file, text.rstrip("\n") + "\n", request.config.getoption("--update-golden"))

    return check


def compare_golden(file: Path, text: str, update: bool) -> None:
    """Fail with a diff when *file* does not hold *text*; write it instead when *update*."""
    old = file.read_text() if file.exists() else ""
    if old == text:
        return
    diff = "".join(
        difflib.unified_diff(
            old.splitlines(keepends=True), text.splitlines(keepends=True), str(file), "now"
        )
    )
    if update:
        print(diff)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return
    pytest.fail(f"golden text differs (accept it with --update-golden):\n{diff}", pytrace=False)
