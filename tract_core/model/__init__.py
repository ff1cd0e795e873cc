"""Models and their lifecycle: graphs, facts, patches, rewriting.

The names of this page are those of the established architecture: a model starts as an `InferenceModel`, becomes a
`TypedModel` once every type and shape is known, and is brought to its normal form by `TypedModel.declutter`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tract_core.api.model import Model
    from tract_core.data import DatumType, QuantizedType
    from tract_core.model.axes import AxesMapping, Axis
    from tract_core.model.fact import Fact, InferenceFact, ShapeFact, TypedFact
    from tract_core.model.graph import Graph, InletId, Node, Outlet, OutletId
    from tract_core.model.inference import InferenceModel
    from tract_core.model.op import Op, TypedOp
    from tract_core.model.patch import ModelPatch, TypedModelPatch
    from tract_core.model.rewriter import Rewriter, Rule, RuleSet
    from tract_core.model.traits import DatumExt, DatumTypeExt, SpecialOps
    from tract_core.model.typed import TypedModel, TypedNode
    from tract_core.runtime.plan import (
        RunnableModel,
        TypedFrozenSimpleState,
        TypedRunnableModel,
        TypedSimplePlan,
        TypedSimpleState,
    )

_HOME = {
    "tract_core.api.model": ("Model",),
    "tract_core.data": ("DatumType", "QuantizedType"),
    "tract_core.model.axes": ("AxesMapping", "Axis"),
    "tract_core.model.fact": ("Fact", "InferenceFact", "ShapeFact", "TypedFact"),
    "tract_core.model.graph": ("Graph", "InletId", "Node", "Outlet", "OutletId"),
    "tract_core.model.inference": ("InferenceModel",),
    "tract_core.model.op": ("Op", "TypedOp"),
    "tract_core.model.patch": ("ModelPatch", "TypedModelPatch"),
    "tract_core.model.rewriter": ("Rewriter", "Rule", "RuleSet"),
    "tract_core.model.traits": ("DatumExt", "DatumTypeExt", "SpecialOps"),
    "tract_core.model.typed": ("TypedModel", "TypedNode"),
    "tract_core.runtime.plan": (
        "RunnableModel",
        "TypedFrozenSimpleState",
        "TypedRunnableModel",
        "TypedSimplePlan",
        "TypedSimpleState",
    ),
}

__all__ = [
    "AxesMapping",
    "Axis",
    "DatumExt",
    "DatumType",
    "DatumTypeExt",
    "Fact",
    "Graph",
    "InferenceFact",
    "InferenceModel",
    "InletId",
    "Model",
    "ModelPatch",
    "Node",
    "Op",
    "Outlet",
    "OutletId",
    "QuantizedType",
    "Rewriter",
    "Rule",
    "RuleSet",
    "RunnableModel",
    "ShapeFact",
    "SpecialOps",
    "TypedFact",
    "TypedFrozenSimpleState",
    "TypedModel",
    "TypedModelPatch",
    "TypedNode",
    "TypedOp",
    "TypedRunnableModel",
    "TypedSimplePlan",
    "TypedSimpleState",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that a light import stays light."""
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
