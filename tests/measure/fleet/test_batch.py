"""Whatever becomes of the nodes, every candidate is started once and answered once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from ansorpy.deadline import until
from ansorpy.errors import MissingDependency, UsageError, VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.fleet.base import Ticket
from ansorpy.measure.fleet.patience import Patience
from ansorpy.measure.fleet.runner import FleetRunner
from ansorpy.measure.fleet.wire import write_answer
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.schedule.state import State
from ansorpy.version import __version__
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.fleet.simulated import SimulatedFleet, factor_of, failing, speeds
from tests.measure.planted import planted

DAG = matmul(64, 40, 17)
TASK = task_of(DAG)
FACTORS = list(range(2, 22))
STATES = [tiled(DAG, factor) for factor in FACTORS]
HASTY = Patience(rejoin_s=0.0, look_s=0.0)
EVEN = speeds(a=1.0, b=1.0, c=1.0)
# Questions whose answers are overdue after some hundredths of a second.
BRISK = MeasureOptions(build_timeout_s=1e-3, run_timeout_s=1e-3, reference_timeout_s=1e-3)
BRISK_PATIENCE = Patience(rejoin_s=0.0, look_s=0.0, grace_s=0.02)


def unrun(node: str, answer: bytes) -> bytes:
    """Code for whatever ran."""
    return write_answer([planted("good")]) if b"seconds" in answer else answer


def old(node: str, answer: bytes) -> bytes:
    """Greetings of another version."""
    return answer.replace(__version__.encode(), b"0.0.1")


@dataclass
class Listener:
    """Counts what an observer is told, by the candidates' places in ``states``."""

    states: Sequence[State]
    known: dict[int, MeasureResult] = field(default_factory=dict)
    started_at: list[int] = field(default_factory=list)
    ended_at: dict[int, MeasureResult] = field(default_factory=dict)

    def started(self, state: State) -> MeasureResult | None:
        index = self.states.index(state)
        self.started_at.append(index)
        return self.known.get(index)

    def ended(self, end: TrialEnd) -> None:
        index = self.states.index(end.state)
        assert index in self.started_at and index not in self.ended_at
        self.ended_at[index] = end.result


def measure(fleet, states=STATES, incumbent_s=None, known=(), options=None, patience=HASTY):
    """Results of *states*, checked to be what the observer was told."""
    with FleetRunner(fleet, options, patience) as runner:
        results = measured(runner, states, incumbent_s, known)
    assert fleet.closed
    return results


def measured(runner, states=STATES, incumbent_s=None, known=()):
    heard = Listener(states, dict(known))
    results = runner.measure(TASK, states, incumbent_s=incumbent_s, observer=heard)
    assert len(results) == len(states)
    assert sorted(heard.started_at) == list(range(len(states)))
    assert {**heard.ended_at, **heard.known} == dict(enumerate(results))
    return results


def test_every_node_takes_a_share_and_results_are_in_order():
    fleet = SimulatedFleet(["a", "b", "c"], failing(EVEN, 7, 11))
    results = measure(fleet)
    assert [r.object_digest for r in results] == [str(f) for f in FACTORS]
    assert [f for f, r in zip(FACTORS, results, strict=True) if not r.ok] == [7, 11]
    ran = Counter(node for node, kind, _ in fleet.log if kind == "measure")
    assert set(ran) == {"a", "b", "c"}
    built = Counter(factor for _, kind, factor in fleet.log if kind == "build")
    assert built == dict.fromkeys(FACTORS, 1)


@pytest.mark.parametrize("names", [["a", "b"], []])
def test_a_deadline_that_has_passed_asks_nobody(names):
    fleet = SimulatedFleet(names, EVEN)
    with until(time.monotonic()):
        results = measure(fleet)
    assert {r.kind for r in results} == {TrialKind.CUT} and fleet.log == []


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("building", [[], ["x"]])
def test_a_deadline_cuts_what_waits_and_takes_what_is_under_way(building):
    def slow(node: str, state: State) -> MeasureResult:
        time.sleep(0.2)
        return EVEN(node, state)

    fleet = SimulatedFleet(["a", "b"], slow, building=building)
    with until(time.monotonic() + 0.5):
        results = measure(fleet, incumbent_s=1e-9)
    kinds = Counter(result.kind for result in results)
    assert set(kinds) == {TrialKind.OK, TrialKind.CUT} and kinds[TrialKind.OK] < 6


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("losses", [1, 3])
def test_a_node_that_does_not_answer_after_the_deadline_is_left_out(losses):
    class Silent(SimulatedFleet):
        """Never answers what a candidate takes."""

        def wait(self, tickets: Sequence[Ticket], timeout_s: float) -> list[Ticket]:
            able = [t for t in tickets if self.pending[t].method != "measure"]
            time.sleep(0.01)
            return super().wait(able, timeout_s) if able else []

    fleet = Silent(["a", "b"], EVEN)
    with until(time.monotonic() + 0.3):
        results = measure(fleet, patience=replace(HASTY, late_s=0.1, losses=losses))
    assert {r.kind for r in results} == {TrialKind.CUT}
    assert set(fleet.dropped) == {"a", "b"}


@pytest.mark.parametrize("seed", range(40))
def test_lost_nodes_lose_and_double_nothing(seed):
    rng = random.Random(seed)
    names = ["a", "b", "c"]
    building = ["x", "y"][: seed % 3]
    doomed = {*rng.sample(names, rng.randint(0, 2)), *building}
    slow = {name: rng.choice([1.0, 1.3, 0.8]) for name in names}

    def fate(node: str, kind: str, states: Sequence[State]) -> bool:
        return node in doomed and rng.random() < 0.2

    outcome = failing(speeds(**slow), 5, 13)
    fleet = SimulatedFleet(names, outcome, fate, seed=seed, building=building)
    results = measure(fleet, incumbent_s=rng.choice([None, 1e-4]))
    assert [f for f, r in zip(FACTORS, results, strict=True) if not r.ok] == [5, 13]
    assert all(r.seconds for r in results if r.ok)


def test_the_best_times_are_all_of_the_home_node():
    fleet = SimulatedFleet(["a", "b"], speeds(a=1.0, b=0.5))
    results = measure(fleet, incumbent_s=2e-3)
    best = min(results, key=lambda r: r.median_s)
    home_s = {f"{factor}": 1e-3 / factor for factor in FACTORS}
    assert best.median_s == pytest.approx(home_s[best.object_digest])
    ran = Counter(factor for _, kind, factor in fleet.log if kind == "measure")
    assert max(ran.values()) == 2, "new bests of the other node are run again on the first"


def test_a_repeat_moves_to_the_next_home_when_its_node_is_lost():
    def fate(node: str, kind: str, states: Sequence[State]) -> bool:
        repeats = [entry for entry in fleet.log if entry[0] == "b" and entry[1] == "measure"]
        return node == "a" and kind == "measure" and bool(repeats)

    fleet = SimulatedFleet(["a", "b"], speeds(a=1.0, b=0.5), fate, seed=3)
    results = measure(fleet)
    assert fleet.names == ["b"] and all(r.ok for r in results)


def test_nodes_that_offer_to_build_do_all_of_it():
    fleet = SimulatedFleet(["a", "b"], failing(EVEN, 7), building=["x"])
    results = measure(fleet)
    assert [f for f, r in zip(FACTORS, results, strict=True) if not r.ok] == [7]
    did = Counter((node, kind) for node, kind, _ in fleet.log)
    assert did["x", "build"] == len(FACTORS) and fleet.sent >= len(FACTORS)
    assert {kind for node, kind in did if node != "x"} == {"measure"}


def test_nodes_that_only_build_are_not_enough():
    with pytest.raises(MissingDependency, match="no node can time"):
        measure(SimulatedFleet([], EVEN, building=["x"]))


def test_what_another_tuner_measured_meanwhile_is_not_run():
    known = {3: MeasureResult(TrialKind.OK, (1e-6,)), 5: MeasureResult(TrialKind.CRASH)}
    fleet = SimulatedFleet(["a", "b"], EVEN)
    results = measure(fleet, known=known)
    assert results[3] is known[3] and results[5] is known[5]
    ran = {factor for _, kind, factor in fleet.log if kind == "measure"}
    assert ran.isdisjoint({FACTORS[3], FACTORS[5]})


@pytest.mark.parametrize("doing", ["build", "measure"])
def test_a_candidate_that_takes_node_after_node_with_it_is_a_crash(doing):
    def fate(node: str, kind: str, states: Sequence[State]) -> bool:
        return kind == doing and 9 in map(factor_of, states)

    names = [f"n{number}" for number in range(5)]
    fleet = SimulatedFleet(names, speeds(**dict.fromkeys(names, 1.0)), fate)
    results = measure(fleet)
    assert len(fleet.names) == 2
    bad = results[FACTORS.index(9)]
    assert bad.kind is TrialKind.CRASH and "3 nodes were lost" in bad.reason
    assert sum(not r.ok for r in results) == 1


def test_a_node_that_cannot_work_is_left_out(caplog):
    def spoil(node: str, answer: bytes) -> bytes:
        return answer[:-3] if node == "b" else answer

    fleet = SimulatedFleet(["a", "b"], EVEN, spoil=spoil)
    assert all(r.ok for r in measure(fleet))
    assert "node b.lab is left out" in caplog.text
    ran = Counter(node for node, kind, _ in fleet.log if kind == "measure")
    assert set(ran) == {"a"}


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"spoil": old}, MissingDependency, "it runs ansorpy 0.0.1, the driver"),
        ({"error": UsageError("it is no znver5")}, MissingDependency, "a.lab: it is no znver5"),
        ({"error": VerificationFailed("C[0] is wrong")}, VerificationFailed, r"on a.lab: C\[0\]"),
        ({"names": []}, MissingDependency, "no node can time ansorpy_.* offered: 0 simulated"),
        ({"fate": lambda *_: True}, MissingDependency, "a.lab: the plug was pulled"),
        ({"spoil": unrun}, MissingDependency, "with code where it was to run"),
        ({"spoil": lambda node, answer: b"junk"}, MissingDependency, "not a greeting"),
    ],
)
def test_without_a_node_the_error_says_why(change, error, match):
    fleet = SimulatedFleet(**{"names": ["a"], "outcome": EVEN, **change})
    with pytest.raises(error, match=match):
        measure(fleet)


def test_nodes_that_join_later_take_over():
    def fate(node: str, kind: str, states: Sequence[State]) -> bool:
        if node == "a" and kind == "measure":
            fleet.names.append("b")
            return True
        return False

    fleet = SimulatedFleet(["a"], EVEN, fate)
    assert all(r.ok for r in measure(fleet))
    assert {node for node, kind, _ in fleet.log if kind == "measure"} == {"b"}


@dataclass
class Returning(SimulatedFleet):
    """A fleet without nodes has one again when it is looked at for the second time."""

    looks: int = 0

    def nodes(self, task: Task) -> list[str]:
        self.looks = 0 if self.names else self.looks + 1
        if self.looks == 2:
            self.names, self.looks = ["b"], 0
        return super().nodes(task)


@dataclass
class Rejoining(SimulatedFleet):
    """Once "a" is lost, "c" joins, the tenth time that anybody looks."""

    looks: int = 0

    def nodes(self, task: Task) -> list[str]:
        self.looks += "a" not in self.names
        if self.looks == 10:
            self.names.append("c")
        return super().nodes(task)


@pytest.mark.usefixtures("clock")
def test_nodes_lost_between_two_batches_are_waited_for():
    fleet = Returning(["a"], EVEN)
    with FleetRunner(fleet, patience=Patience(rejoin_s=60.0)) as runner:
        assert all(r.ok for r in runner.measure(TASK, STATES[:3], incumbent_s=None))
        fleet.names.clear()
        assert all(r.ok for r in runner.measure(TASK, STATES[3:5], incumbent_s=None))
        fleet.names.clear()
        timed = runner.retime(TASK, STATES[:2])
        assert timed is not None and all(r.ok for r in timed)
    assert {node for node, kind, _ in fleet.log if kind != "build"} == {"a", "b"}
    with pytest.raises(MissingDependency, match="no node can time"):
        FleetRunner(SimulatedFleet([], EVEN)).measure(TASK, STATES[:1], incumbent_s=None)


def test_an_interrupt_ends_what_nodes_do():
    def outcome(node: str, state: State) -> MeasureResult:
        raise KeyboardInterrupt

    fleet = SimulatedFleet(["a", "b"], outcome)
    with pytest.raises(KeyboardInterrupt):
        measure(fleet)
    assert fleet.dropped


def test_finalists_are_timed_on_one_node_and_on_the_next_when_it_is_lost():
    fleet = SimulatedFleet(["a", "b", "c"], speeds(a=1.0, b=2.0, c=3.0))
    runner = FleetRunner(fleet, patience=HASTY)
    runner.measure(TASK, STATES[:4], incumbent_s=None)
    fleet.names.reverse()
    first = runner.retime(TASK, STATES[:3])
    fleet.fate = lambda node, kind, states: node == "a"
    second = runner.retime(TASK, STATES[:3])
    runner.close()
    assert first is not None and second is not None
    assert [r.median_s for r in first] == [1e-3 / f for f in FACTORS[:3]]
    assert [r.median_s for r in second] == [3e-3 / f for f in FACTORS[:3]]


@pytest.mark.usefixtures("clock")
def test_the_deadline_ends_the_wait_for_finalists():
    fleet = SimulatedFleet(["a", "b"], EVEN)
    with FleetRunner(fleet, patience=replace(HASTY, late_s=0.05)) as runner:
        measured(runner, STATES[:4])
        all_hung(fleet)
        with until(time.monotonic() + 0.05):
            cut = runner.retime(TASK, STATES[:3])
        assert cut is not None and {r.kind for r in cut} == {TrialKind.CUT}
        assert [kind for _, kind in fleet.asked].count("retime") == 1 and fleet.dropped
        fleet.hangs = lambda node, kind, states: False
        timed = runner.retime(TASK, STATES[:3])
    assert timed is not None and all(r.ok for r in timed)


def no_node(fleet: SimulatedFleet) -> None:
    fleet.names.clear()


def all_lost(fleet: SimulatedFleet) -> None:
    fleet.fate = lambda node, kind, states: True


def all_hung(fleet: SimulatedFleet) -> None:
    fleet.hangs = lambda node, kind, states: True


@pytest.mark.parametrize(
    ("happens", "said"),
    [(no_node, "no node can time"), (all_lost, "was pulled"), (all_hung, "no answer within")],
)
def test_without_a_node_finalists_keep_their_first_times(happens, said, caplog):
    fleet = SimulatedFleet(["a", "b"], EVEN)
    with FleetRunner(fleet, BRISK, BRISK_PATIENCE) as runner:
        measured(runner, STATES[:4])
        happens(fleet)
        assert runner.retime(TASK, STATES[:3]) is None
    [warning] = [r for r in caplog.messages if "the finalists are not timed again" in r]
    assert said in warning


def test_nodes_that_are_gone_are_waited_for_once(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("ansorpy.measure.fleet.roster.time.sleep", slept.append)
    fleet = SimulatedFleet(["a"], EVEN)
    with FleetRunner(fleet, patience=Patience(rejoin_s=0.01)) as runner:
        measured(runner, STATES[:2])
        fleet.names.clear()
        assert runner.retime(TASK, STATES[:2]) is None and slept
        slept.clear()
        assert runner.retime(TASK, STATES[:2]) is None and not slept


@pytest.mark.parametrize("doing", ["hello", "build", "measure"])
def test_a_node_that_hangs_is_set_aside_and_others_do_its_work(doing, caplog):
    fleet = SimulatedFleet(
        ["a", "b", "c"], EVEN, hangs=lambda n, kind, _: (n, kind) == ("a", doing)
    )
    with FleetRunner(fleet, BRISK, BRISK_PATIENCE) as runner:
        assert all(r.ok for r in measured(runner))
        assert "node a.lab is set aside: no answer within" in caplog.text
        assert fleet.dropped == ["a"]
        fleet.asked.clear()
        assert all(r.ok for r in measured(runner))
    assert {node for node, _ in fleet.asked} == {"b", "c"}, "the next batch asks it again"


def test_a_hanging_builder_gives_its_candidates_to_the_others():
    fleet = SimulatedFleet(["a"], EVEN, building=["x", "y"], hangs=lambda node, *_: node == "x")
    assert all(r.ok for r in measure(fleet, options=BRISK, patience=BRISK_PATIENCE))
    assert {node for node, kind, _ in fleet.log if kind == "build"} == {"y"}


def test_a_candidate_that_hangs_node_after_node_is_a_crash():
    names = [f"n{number}" for number in range(5)]
    outcome = speeds(**dict.fromkeys(names, 1.0))
    fleet = SimulatedFleet(
        names, outcome, hangs=lambda n, kind, states: 9 in map(factor_of, states)
    )
    results = measure(fleet, options=BRISK, patience=BRISK_PATIENCE)
    bad = results[FACTORS.index(9)]
    assert bad.kind is TrialKind.CRASH and "3 nodes were lost" in bad.reason
    assert sum(not r.ok for r in results) == 1


def test_when_all_nodes_hang_the_error_names_them():
    fleet = SimulatedFleet(["a", "b"], EVEN, hangs=lambda node, kind, _: kind == "measure")
    with pytest.raises(MissingDependency, match=r"a\.lab: no answer within .* to time a program"):
        measure(fleet, options=BRISK, patience=BRISK_PATIENCE)


def test_an_answer_that_came_while_nobody_looked_counts():
    overdue = Patience(rejoin_s=0.0, look_s=0.0, grace_s=-1e6)
    fleet = SimulatedFleet(["a", "b"], EVEN)
    assert all(r.ok for r in measure(fleet, options=BRISK, patience=overdue))


@pytest.mark.usefixtures("clock")
def test_lost_nodes_are_waited_for_while_one_that_cannot_work_is_there():
    def fate(node: str, kind: str, states: Sequence[State]) -> bool:
        return node == "a" and kind == "measure"

    def spoil(node: str, answer: bytes) -> bytes:
        return b"junk" if node == "b" else answer

    fleet = Rejoining(["a", "b"], EVEN, fate, spoil=spoil)
    assert all(r.ok for r in measure(fleet, patience=Patience(rejoin_s=60.0, look_s=0.0)))
    assert {node for node, kind, _ in fleet.log if kind == "measure"} == {"c"}


def test_nobody_is_waited_for_while_all_are_there_and_cannot_work():
    fleet = SimulatedFleet(["a", "b"], EVEN, spoil=lambda node, answer: b"junk")
    with pytest.raises(MissingDependency, match="not a greeting"):
        measure(fleet, patience=Patience(rejoin_s=3600.0))


def test_nothing_to_measure_asks_nobody():
    assert FleetRunner(SimulatedFleet([], EVEN)).measure(TASK, [], incumbent_s=None) == []
