"""Halide's network: it begins as the sum of the analytic model's terms, and corrects them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch

from ansorpy.cost.analytic.hardware import CAUSES, hardware_of
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.neural.halide import Halide
from ansorpy.cost.neural.training import Fitting
from tests.cost.neural.spaces import drawn, learned, seconds_of, task_of


def test_coefficients_begin_at_one() -> None:
    task, model = task_of(), Halide()
    programs = drawn(task, 40, 1)
    views = view_nest(programs.nest, 40)
    terms = hardware_of(task.target).causes(task, views)
    assert terms.shape[:2] == (40, 1) and terms.shape[2] <= CAUSES and (terms >= 0).all()
    start = learned(Halide(fitting=Fitting(rate=0.0)), n=40)
    speed = 1 / terms.sum((1, 2))
    np.testing.assert_allclose(
        rank_correlation(start.predict(task, programs), speed), 1.0, atol=1e-6
    )
    np.testing.assert_allclose(model.untrained(task, programs) / speed, 1.0, rtol=0.5)


def test_scores_have_the_scale_of_all_programs_that_ran() -> None:
    model, failing = Halide(fitting=Fitting(rate=0.0)), drawn(task_of(), 40, 4)
    model.learn(task_of(), failing, np.full(40, np.inf))
    model.refit()
    wrong = []
    for size, scale in ((32, 1.0), (64, 1e4)):
        programs = drawn(task_of(size), 40, size)
        seconds = scale * seconds_of(programs)
        seconds[::4] = np.inf
        model.learn(task_of(size), programs, seconds)
    model.refit()
    for size, scale in ((32, 1.0), (64, 1e4)):
        programs = drawn(task_of(size), 40, size)
        ran = np.arange(40) % 4 > 0
        expected = 1e-9 / (scale * seconds_of(programs))
        wrong.append(np.log(model.predict(task_of(size), programs) / expected)[ran])
    np.testing.assert_allclose(np.concatenate(wrong).mean(), 0, atol=1e-3)


def test_it_learns_what_the_terms_do_not_say() -> None:
    task, model = task_of(), Halide()
    unseen = drawn(task, 200, 3)
    before = rank_correlation(model.predict(task, unseen), -seconds_of(unseen))
    learned(model, seed=2, n=200)
    after = rank_correlation(model.predict(task, unseen), -seconds_of(unseen))
    assert after > max(before + 0.1, 0.8)
    assert torch.get_num_threads() >= 1
