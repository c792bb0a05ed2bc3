"""Plugins: a user's scripts and modules that register parts of the search, or operators."""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.quantities import path_of
from ansorpy.registry import described_error

__all__ = ["load_plugins"]


def load_plugins(paths: Collection[str | Path]) -> None:
    """Run scripts, or import modules, that register their own parts or operators.

    Parts are registered in :data:`ansorpy.PARTS`, operators by :func:`ansorpy.register_op`.

    Raises:
        UsageError: There is no such file or module, or one fails.
    """
    if isinstance(paths, str | Path) or not isinstance(paths, Collection):
        raise UsageError("plugins are given by a list", hint="pass a list, such as ['ops.py']")
    for path in (path_of(given, "a plugin") for given in paths):
        is_module = path.suffix != ".py" and all(map(str.isidentifier, str(path).split(".")))
        (_import_plugin if is_module else _load_plugin)(path)


def _import_plugin(path: Path) -> None:
    """Import the module with the dotted name *path*."""
    name = str(path)
    try:
        import_module(name)
    except AnsorpyError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise UsageError(f"the plugin {name} failed: {error}") from error
        raise _no_plugin(path) from None
    except Exception as error:
        raise UsageError(f"the plugin {name} failed: {described_error(error, name)}") from error


def _no_plugin(path: Path) -> UsageError:
    return UsageError(
        f"there is no plugin {path}", hint="name a Python file, such as mine.py, or a module"
    )


def _load_plugin(path: Path) -> None:
    spec = spec_from_file_location(f"ansorpy_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise _no_plugin(path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except AnsorpyError:
        raise
    except Exception as error:
        raise UsageError(
            f"the plugin {path} failed: {described_error(error, path.absolute())}"
        ) from error
