"""Network graphs: :func:`optimize` rewrites one, :func:`partition` turns it into kernel calls."""

from __future__ import annotations

from ansorpy.graph.ir import Graph
from ansorpy.graph.network import Call, Network, TensorInfo, Workload
from ansorpy.graph.optimize import optimize
from ansorpy.graph.partition import partition

__all__ = ["Call", "Graph", "Network", "TensorInfo", "Workload", "optimize", "partition"]
