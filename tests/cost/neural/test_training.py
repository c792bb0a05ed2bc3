"""The trainer and its losses."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch

from ansorpy.arrays import Floats
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.neural.halide import Halide
from ansorpy.cost.neural.losses import lambda_rank, relative, squared
from ansorpy.cost.neural.tenset import TenSet
from ansorpy.cost.neural.training import Examples, Fitting, train
from tests.cost.neural.spaces import drawn, learned, seconds_of, task_of


def by_definition(scores: list[float], labels: list[float]) -> float:
    order = np.argsort(scores)[::-1]
    s, y = np.array(scores)[order], np.array(labels)[order]
    discount = 1 / np.log2(np.arange(len(s)) + 2)
    best = float(((2.0 ** np.sort(y)[::-1] - 1) * discount).sum())
    gain = (2.0**y - 1) / best
    return float(
        sum(
            abs(discount[i] - discount[j]) * abs(gain[i] - gain[j])
            * np.log2(1 + np.exp(s[j] - s[i]))
            for i in range(len(s)) for j in range(len(s)) if y[i] > y[j]
        )
    )  # fmt: skip


def test_lambda_rank_is_its_definition(rng: np.random.Generator) -> None:
    scores, labels = rng.normal(size=7).tolist(), [*rng.random(5).tolist(), 0.0, 1.0]
    found = lambda_rank(torch.tensor(scores), torch.tensor(labels))
    assert float(found) == pytest.approx(by_definition(scores, labels), rel=1e-4)


def test_lambda_rank_prefers_the_right_order() -> None:
    labels = torch.tensor([1.0, 0.5, 0.2, 0.0])
    right, wrong = torch.tensor([3.0, 2.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert lambda_rank(right, labels) < lambda_rank(wrong, labels)


def test_relative_errors_leave_failures_out() -> None:
    scores = torch.log(torch.tensor([2.0, 8.0, 5.0]))
    assert float(relative(scores, torch.tensor([4.0, 4.0, 0.0]))) == pytest.approx(0.75)
    assert float(relative(scores, torch.zeros(3))) == 0
    assert float(squared(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]))) == 2.0


def trained(**options: int) -> TenSet:
    return learned(TenSet(hidden=32, fitting=Fitting(**options)), seed=0, n=48)


def test_equal_records_give_equal_weights_whatever_else_draws_random_numbers() -> None:
    one = trained()
    torch.manual_seed(77)
    threads = torch.get_num_threads()
    before = torch.random.get_rng_state()
    other = trained()
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, array in one.weights().items():
        np.testing.assert_array_equal(array, other.weights()[name])
    assert any((array != trained(seed=1).weights()[n]).any() for n, array in one.weights().items())


def test_a_refit_goes_on_from_the_last_weights_and_waits_for_enough_programs() -> None:
    model = trained()
    before = model.weights()
    learned(model, seed=1, n=2)
    assert all((before[name] == array).all() for name, array in model.weights().items())
    learned(model, seed=2, n=16)
    new = model.weights()["out.weight"]
    assert 0 < np.abs(new - before["out.weight"]).max() < 0.2


def test_nothing_but_failures_leaves_finite_scores() -> None:
    model = TenSet(hidden=8)
    programs = drawn(task_of(), 40, 3)
    model.learn(task_of(), programs, np.full(40, np.inf))
    model.refit()
    assert np.isfinite(model.predict(task_of(), programs)).all()


def test_inputs_far_from_those_of_the_first_programs_leave_weights_finite(
    rng: np.random.Generator,
) -> None:
    model = Halide(hidden=8, min_programs=16)

    def rows(level: float) -> list[Floats]:
        terms = rng.uniform(1, 2, (32, 1, model.width))
        terms[:, :, -40:] = level * rng.choice((-1, 1), (32, 1, 40))
        return list(terms)

    seconds = rng.uniform(1e-6, 2e-6, 32)
    for level in (0.0, 1e6):
        model.take("task", rows(level), seconds)
        model.refit()
    assert all(np.isfinite(array).all() for array in model.weights().values())
    assert np.isfinite(model.score(rows(1e6), "task")).all()
    near, far = (np.full((1, model.width), level) for level in (1e5, 1e6))
    assert model.score([near], "task") != model.score([far], "task")


def test_a_batch_without_a_finite_gradient_is_skipped(rng: np.random.Generator) -> None:
    net = torch.nn.Linear(1, 1)
    net.register_buffer("centre", torch.zeros(1))
    net.register_buffer("spread", torch.ones(1))
    before = net.weight.detach().clone()
    for label, moves in ((np.inf, False), (1.0, True)):
        examples = Examples([np.ones((1, 1))] * 4, np.full(4, label), np.zeros(4, dtype=np.int64))
        train(net, lambda batch, labels: (net(batch.rows) * labels).mean(), examples,
              Fitting(epochs=1), rng)  # fmt: skip
        assert bool((net.weight != before).any()) == moves and net.weight.isfinite().all()


def test_scores_are_about_relative_throughput() -> None:
    model, programs = learned(TenSet(hidden=64), seed=4, n=200), drawn(task_of(), 200, 4)
    seconds = seconds_of(programs)
    score, throughput = model.predict(task_of(), programs), seconds.min() / seconds
    assert rank_correlation(score, throughput) > 0.8
    assert 0.2 < np.median(score / throughput) < 5
