"""The table of cost models by name; to add one, write a file and add a line to the table."""

from __future__ import annotations

from ansorpy.cost.protocol import CostModel
from ansorpy.registry import Registry

__all__ = ["MODELS"]

MODELS: Registry[CostModel] = Registry(
    "cost model",
    {
        "boosted": "ansorpy.cost.boosted:BoostedTrees",
        "rf": "ansorpy.cost.forest:RandomForest",
        "family": "ansorpy.cost.family:FamilyModel",
        "analytic": "ansorpy.cost.analytic.model:AnalyticModel",
        "static_linear": "ansorpy.cost.static_linear:StaticLinear",
        "random": "ansorpy.cost.random:RandomModel",
        "tenset": "ansorpy.cost.neural.tenset:TenSet",
        "tlp": "ansorpy.cost.neural.tlp:TLP",
        "mtl_tlp": "ansorpy.cost.neural.mtl_tlp:MultiTaskTLP",
        "pruner": "ansorpy.cost.neural.pruner:Pruner",
        "tiramisu": "ansorpy.cost.neural.tiramisu:Tiramisu",
        "halide": "ansorpy.cost.neural.halide:Halide",
        "value_lstm": "ansorpy.cost.neural.value_lstm:ValueLSTM",
    },
    CostModel,
)
