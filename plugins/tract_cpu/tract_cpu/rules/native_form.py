"""The form of a model that kernels are made for: what this runtime rewrites before it decides on kernels."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.model.declutter import rewrite_by
from tract_core.model.rewriter import Rewriter
from tract_core.model.typed import TypedModel
from tract_cpu.rules.table import RULES

_BYTES: Final = (DatumType.U8, DatumType.I8)


def native_form(model: TypedModel) -> TypedModel:
    """The model in that form: the very same one where it has no tensor of bytes, as all rules are about these."""
    if not any(outlet.fact.datum_type in _BYTES for node in model.nodes for outlet in node.outputs):
        return model
    from tract_cpu.rules.elements import ON_ELEMENTS  # most models do without

    copy = model.clone()
    changed = rewrite_by(RULES, copy).changed
    changed = Rewriter(ON_ELEMENTS).rewrite(copy).changed or changed
    copy.compact()
    return copy if changed else model
