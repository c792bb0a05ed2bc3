"""A fork server that imports nothing ahead, for drivers whose workers need little."""

from __future__ import annotations

import sys

from ansorpy.measure.workers import fork_server

__all__ = ["BARE"]

BARE = """
from ansorpy.measure.workers import started
from tests.measure.workers import bare_server
started.fork_server = bare_server
"""
"""The first lines of such a driver."""

if __name__ == "__main__":
    fork_server.PRELOADED = ()
    sys.exit(fork_server.main(sys.argv[1:]))
