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
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.archive import DAMAGE, write_archive

__all__ = ["read_network", "write_network"]

_WIDEST = 4096
"""The largest whole number that a setting may have."""

_Size = Annotated[int, Field(strict=True, ge=0, le=_WIDEST)]
_Share = Annotated[FiniteFloat, Field(ge=0, le=1)]

_TRAINING = ("fitting", "min_programs", "refit_share", "refit_least")
"""Settings of how a search trains, which are not the network's."""


class _Header(BaseModel):
    """Which network it is.

    Args:
        model: Its name among the cost models.
        sees: :attr:`NetworkModel.version` of what it was trained on.
        settings: Its sizes, shares and names, by field.
        targets: As in :class:`NetworkModel`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["ansorpy-network"] = "ansorpy-network"
    model: str
    sees: str
    settings: Mapping[str, _Size | _Share | Loss]
    targets: tuple[str, ...]


def write_network(model: NetworkModel, path: Path) -> None:
    """Write the trained *model*, without the programs that it learned from.

    Raises:
        UsageError: It is not trained, is none that has a name, or has settings that no file may
            have, or *path* cannot be written.
    """
    names = [name for name in MODELS if MODELS.factory(name) is type(model)]
    if not names or not model.is_trained:
        raise UsageError(
            "only a trained network that has a name among the cost models can be saved",
            hint="learn and refit first",
        )
    kinds = {name: kind for name, kind in _kinds(type(model)).items() if name not in _TRAINING}
    # A share may be given as a whole number, but is read as a share.
    settings = {name: kind(getattr(model, name)) for name, kind in kinds.items()}
    try:
        header = _Header(
            model=names[0], sees=model.version, settings=settings, targets=tuple(model.targets)
        )
        write_archive(path, header, model.weights())
    except ValidationError as error:
        name = error.errors()[0]["loc"][1]
        raise UsageError(f"cannot save {names[0]}: its setting {name} is out of range") from None
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
    kinds = _kinds(made)
    settings: dict[str, Any] = dict(header.settings)
    if any(kinds.get(name) is not type(value) for name, value in settings.items()):
        raise ForeignFile(f"{path} was written by another version of ansorpy")
    model = made(**settings)
    if model.version != header.sees:
        raise ForeignFile(f"{path} was trained on other features", hint="train it again")
    if not all(w.dtype == np.float32 and np.isfinite(w).all() for w in weights.values()):
        raise ForeignFile(f"{path} is damaged: its weights are not finite numbers of float32")
    model.start_from(weights)
    if not (weights["spread"] > 0).all():
        raise ForeignFile(f"{path} is damaged: the scale of a column is not positive")
    model.targets.extend(header.targets)
    return model


def _kinds(made: type[NetworkModel]) -> dict[str, Any]:
    """The type of each setting of a network."""
    return {f.name: type(f.default) for f in fields(made) if f.init}
