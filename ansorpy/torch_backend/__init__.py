"""The backend for ``torch.compile``.

    compiled = torch.compile(model, backend="ansorpy")
    compiled = torch.compile(model, backend="ansorpy", options={"effort": "quick", "threads": 2})

The first form needs no import: the package registers the name.  A :class:`Backend` also tells what
it compiled, and which operators torch runs itself::

    backend = Backend(effort="quick")
    compiled = torch.compile(model, backend=backend)
"""

from __future__ import annotations

from ansorpy.torch_backend.backend import Backend, backend

__all__ = ["Backend", "backend"]
