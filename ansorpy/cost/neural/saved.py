"""Networks as files: a JSON header and arrays in numpy's format, of which nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.losses import Loss
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.training import Fitting
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.archive import DAMAGE, write_archive

__all__ = ["read_network", "write_network"]

_WIDEST = 4096
"""The largest whole number that a setting may have."""


class _Header(BaseModel):
    """Which network it is.

    Args:
        model: Its name among the cost models.
        sees: :attr:`NetworkModel.version` of what it was trained on.
        settings: Its numbers and names, by field.
        targets: As in :class:`NetworkModel`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["ansorpy-network"] = "ansorpy-network"
    model: str
    sees: str
    settings: Mapping[str, Annotated[int, Field(ge=1, le=_WIDEST)] | FiniteFloat | Loss]
    targets: tuple[str, ...]


def write_network(model: NetworkModel, path: Path) -> None:
    """Write the trained *model*, without the programs that it learned from.

    Raises:
        UsageError: It is not trained, or is none that has a name, or *path* cannot be written.
    """
    names = [name for name in MODELS if MODELS.factory(name) is type(model)]
    if not names or not model.is_trained:
        raise UsageError(
            "only a trained network that has a name among the cost models can be saved",
            hint="learn and refit first",
        )
    values: dict[str, Any] = {f.name: getattr(model, f.name) for f in fields(model) if f.init}
    header = _Header(
        model=names[0],
        sees=model.version,
        settings={n: v for n, v in values.items() if not isinstance(v, Fitting)},
        targets=tuple(model.targets),
    )
    try:
        write_archive(path, header, model.weights())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def read_network(path: Path) -> NetworkModel:
    """The network in the file *path*; it can learn more.

    Raises:
        ForeignFile: It is none, damaged, or sees programs otherwise than this version.
        MissingDependency: torch is not installed.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = _Header.model_validate_json(archive["header"].tobytes())
            weights = {name: archive[name] for name in archive.files if name != "header"}
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except (ValidationError, *DAMAGE):
        raise ForeignFile(
            f"{path} is not a network written by ansorpy",
            hint="ansorpy dataset train DATA --cost-model tenset -o NETWORK.npz writes one",
        ) from None
    made = MODELS.factory(header.model) if header.model in MODELS else None
    if not (isinstance(made, type) and issubclass(made, NetworkModel)):
        raise ForeignFile(f"{path} is of a network that is unknown here, {header.model}")
    kinds = {f.name: type(f.default) for f in fields(made) if f.init}
    settings: dict[str, Any] = dict(header.settings)
    if any(kinds.get(name) is not type(value) for name, value in settings.items()):
        raise ForeignFile(f"{path} was written by another version of ansorpy")
    model = made(**settings)
    if model.version != header.sees:
        raise ForeignFile(f"{path} was trained on other features", hint="train it again")
    if not all(w.dtype == np.float32 and np.isfinite(w).all() for w in weights.values()):
        raise ForeignFile(f"{path} is damaged: its weights are not finite numbers of float32")
    model.start_from(weights)
    model.targets.extend(header.targets)
    return model
