"""Handlers of the run worker for programs in C: those for object code with another loader."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ansorpy.codegen.c.loader import load
from ansorpy.measure.run.handlers import RunSession, warm_up
from ansorpy.measure.run.host import HostTask
from ansorpy.measure.workers.worker import Handler

__all__ = ["make_handlers"]


def make_handlers() -> Mapping[str, Handler]:
    """Handlers of the run worker."""
    warm_up()
    return RunSession(partial(HostTask, load=load)).handlers()
