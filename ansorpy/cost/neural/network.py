"""The base of cost models that are networks.

A model encodes each program as a matrix, and defines layers and how they compute an output from it.
The base collects what is measured, trains the network, and scales outputs to scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats
from ansorpy.cost.dataset import Dataset, TaskSamples
from ansorpy.cost.neural.library import demand_torch, on_threads
from ansorpy.cost.neural.losses import LOSSES, Loss
from ansorpy.cost.neural.teacher import Teacher, Weight, put_weights, weights_of
from ansorpy.cost.neural.training import Batch, Examples, Fitting, batch_of, train
from ansorpy.cost.programs import Programs
from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Task
from ansorpy.measure.records.samples import Samples

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["SLOWEST", "NetworkModel"]

_AT_ONCE = 1024
"""Programs that are scored together."""

_NARROWEST = 0.25
"""The smallest scale of a column: one that hardly varies here may vary for other tasks."""

_FARTHEST = 300.0
"""The largest logarithm of a score, whose exponential is finite."""

SLOWEST = 0.01
"""Programs slower than this share of the best count as this slow when outputs are scaled."""


@dataclass
class NetworkModel(ABC):
    """A cost model whose score is the exponential of a network's output, scaled to throughput.

    A ranking loss says nothing of distances, but strategies weigh scores, so a line is fitted from
    outputs to the logarithms of the training programs' throughputs.  The network goes on training
    from its last weights, on everything it has learned, as a search cannot wait for it to be
    trained anew (:class:`Fitting`).
    """

    loss: Loss = "lambda_rank"
    fitting: Fitting = Fitting()
    min_programs: int = 32
    """With fewer programs, nothing is trained."""
    refit_share: float = 0.05
    """Trains when new programs are at least this share of those of the run's own tasks ..."""
    refit_least: float = 0.02
    """... and this share of all programs (:meth:`Dataset.grew`)."""
    data: Dataset = field(default_factory=Dataset, init=False, repr=False)
    targets: list[str] = field(default_factory=list, init=False, repr=False)
    """The keys of the targets that have heads of their own, in order; none if all share one."""
    teacher: Teacher | None = field(default=None, init=False, repr=False)
    _net: nn.Module | None = field(default=None, init=False, repr=False)
    _trained_on: int = field(default=0, init=False, repr=False)
    _refits: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        demand_torch(f'the cost model "{type(self).__name__}"')

    # What each model defines

    @property
    @abstractmethod
    def version(self) -> str:
        """Changes whenever the matrices hold something else."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns of the matrices."""

    @abstractmethod
    def encode(self, task: Task, programs: Programs) -> Floats:
        """The matrix of each program, ``[programs, rows, width]``."""

    @abstractmethod
    def layers(self) -> nn.ModuleDict:
        """The network's layers, with random weights."""

    @abstractmethod
    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        """The output for each program."""

    def untrained(self, task: Task, programs: Programs) -> Floats:
        """The scores before training; any order is as good as another."""
        return np.ones(len(programs))

    def labels(self, samples: TaskSamples) -> Floats:
        """The output that the network should give for each program."""
        return samples.labels

    @property
    def heads(self) -> int:
        """Number of heads: one, unless targets have their own."""
        return 1

    def head(self, task_key: str) -> int:
        """The head that scores a task's programs; scores of different heads are not compared."""
        return 0

    # The interface of cost models

    @property
    def is_trained(self) -> bool:
        return self._net is not None

    def predict(self, task: Task, programs: Programs) -> Floats:
        """Estimated throughput relative to the task's best."""
        if not self.is_trained:
            return self.untrained(task, programs)
        return self.score(list(self.encode(task, programs)), task.key)

    def score(self, features: Sequence[Floats], task_key: str) -> Floats:
        """The trained network's scores of programs given as matrices."""
        import torch

        assert self._net is not None
        heads = np.full(len(features), self.head(task_key))
        found = [np.zeros(0)]
        with on_threads(self.fitting.threads, self.fitting.seed), torch.inference_mode():
            for at in range(0, len(features), _AT_ONCE):
                part = slice(at, at + _AT_ONCE)
                found.append(self._outputs(features[part], heads[part]))
        slope, height = self._net.line.tolist()
        logarithms = slope * np.concatenate(found) + height
        # The weights of a file may be of any size: some outputs are then no numbers.
        finite = np.nan_to_num(logarithms, nan=-_FARTHEST)
        scores: Floats = np.exp(np.clip(finite, -_FARTHEST, _FARTHEST))
        return scores

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> Samples | None:
        """Remember measured programs of *task*."""
        self.take(task.key, list(self.encode(task, programs)), seconds)
        return None

    def take(self, task_key: str, features: Sequence[Floats], seconds: Floats) -> None:
        """Remember programs given as matrices."""
        prior_s = np.ones(len(seconds))
        self.data.add(task_key, [part.astype(np.float32) for part in features], prior_s, seconds)

    def refit(self) -> None:
        """Train further on everything learned so far, if enough of it is new."""
        programs = len(self.data)
        grew = self.data.grew(self._trained_on, self.refit_share, self.refit_least)
        if programs < self.min_programs or not grew:
            return
        self._trained_on = programs
        self._refits += 1
        self._train(self._examples())

    # Weights

    def weights(self) -> dict[str, Weight]:
        """All weights by name; none before training."""
        return {} if self._net is None else weights_of(self._net)

    def start_from(self, weights: Mapping[str, Weight]) -> None:
        """Continue from these :meth:`weights` of a network with the same layers.

        Raises:
            ForeignFile: They are of other layers, or the model's settings make none.
        """
        import torch

        try:
            # Without memory: the settings of a foreign file may ask for any amount.
            with torch.device("meta"):
                net = self._made(*np.ones((2, self.width), dtype=np.float32))
        except (AssertionError, RuntimeError, ValueError) as error:
            raise ForeignFile(f"these settings make no network: {error}") from None
        own = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
        given = {name: array.shape for name, array in weights.items()}
        if own != given:
            wrong = min(own.items() ^ given.items())[0]
            raise ForeignFile(f"these weights are of another network: {wrong} differs")
        net = net.to_empty(device="cpu")
        put_weights(net, weights)
        self._net = net.eval()

    # Training

    def _examples(self) -> Examples:
        tasks = self.data.tasks
        heads = [np.full(len(t.seconds), self.head(key)) for key, t in tasks.items()]
        return Examples(
            [part for samples in tasks.values() for part in samples.features],
            np.concatenate([self.labels(samples) for samples in tasks.values()]),
            np.concatenate(heads),
        )

    def _train(self, examples: Examples) -> None:
        seed = self.fitting.seed + self._refits
        with on_threads(self.fitting.threads, seed):
            rng = np.random.default_rng(seed)
            some = rng.permutation(len(examples))[:_AT_ONCE]
            if self._net is None:
                self._net = self._made(*_units(examples.features))
            if self.loss == "relative" and not self._net.line[1]:
                self._fit_factor(examples, some)
            if self.teacher is not None:
                self.teacher.before(self._net)
            train(self._net, self._loss, examples, self.fitting, rng)
            if self.loss != "relative":
                self._fit_line(examples, some)
            if self.teacher is not None:
                self.teacher.after(self._net)

    def _made(self, centre: Weight, spread: Weight) -> nn.Module:
        """A network with random weights for columns of this mean and standard deviation."""
        import torch

        net = self.layers()
        net.register_buffer("centre", torch.from_numpy(centre))
        net.register_buffer("spread", torch.from_numpy(spread))
        net.register_buffer("line", torch.tensor([1.0, 0.0]))
        return net

    def _fit_line(self, examples: Examples, some: npt.NDArray[np.int64]) -> None:
        """Fit the line from outputs to logarithms of labels to *some* of *examples*."""
        outputs, labels = self._told(examples, some), examples.labels[some]
        logarithms = np.log(np.maximum(labels, SLOWEST * labels.max(initial=1e-30)))
        apart = outputs - outputs.mean()
        slope = max(float(apart @ logarithms) / max(float(apart @ apart), 1e-9), 1e-3)
        self._set_line(slope, float(logarithms.mean() - slope * outputs.mean()))

    def _fit_factor(self, examples: Examples, some: npt.NDArray[np.int64]) -> None:
        """Fit the constant factor that labels have to those of *some* that ran.

        For relative errors, outputs are the logarithms of labels themselves but for this factor.
        It does not change once a program ran: the network learns with it.
        """
        some = some[examples.labels[some] > 0]
        if len(some):
            wrong = np.log(examples.labels[some]) - self._told(examples, some)
            self._set_line(1.0, float(wrong.mean()))

    def _set_line(self, slope: float, height: float) -> None:
        import torch

        assert self._net is not None
        self._net.line.copy_(torch.tensor([slope, height]))

    def _told(self, examples: Examples, some: npt.NDArray[np.int64]) -> Floats:
        """The outputs for *some* of *examples*."""
        import torch

        with torch.inference_mode():
            return self._outputs([examples.features[n] for n in some], examples.heads[some])

    def _outputs(self, features: Sequence[Floats], heads: npt.NDArray[np.int64]) -> Floats:
        net = self._net
        assert net is not None
        found: Floats = self.forward(net, batch_of(features, heads, net)).numpy().astype(np.float64)
        return found

    def _loss(self, batch: Batch, labels: Tensor) -> Tensor:
        """The sum of the heads' losses, each of its own programs."""
        assert self._net is not None
        outputs = self.forward(self._net, batch)
        if self.loss == "relative":
            outputs = outputs + self._net.line[1]
        loss = LOSSES[self.loss]
        own = [batch.heads == head for head in batch.heads.unique()]
        return sum((loss(outputs[mine], labels[mine]) for mine in own), outputs.new_zeros(()))


def _units(features: Sequence[Floats]) -> tuple[Weight, Weight]:
    """Mean and standard deviation of each column, at least :data:`_NARROWEST`."""
    rows = np.concatenate(features)
    return rows.mean(axis=0), np.maximum(rows.std(axis=0), np.float32(_NARROWEST))
