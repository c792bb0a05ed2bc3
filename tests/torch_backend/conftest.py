"""One database for all tests here, so that programs that several networks need are made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torch") / "torch.db"


@pytest.fixture
def backend(db: Path) -> Any:
    import torch

    from ansorpy.torch_backend import Backend

    torch.manual_seed(0)
    torch._dynamo.reset()
    return Backend(db=db, threads=2)
