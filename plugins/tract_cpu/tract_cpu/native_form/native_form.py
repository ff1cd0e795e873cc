"""The form of a model that kernels are made for: what this runtime rewrites before it decides on kernels."""

from __future__ import annotations

from tract_llvm.native_form.native_form import integer_form, rewritten

from tract_core.model.rewriter import Rewriter, RuleSet
from tract_core.model.typed import TypedModel
from tract_cpu.native_form.block_weights import BLOCK_WEIGHTS, has_blocks
from tract_cpu.native_form.custom import CUSTOM, has_custom


def native_form(model: TypedModel) -> TypedModel:
    """The model in that form: the very same one where no rule is about it."""
    spelled = rewritten(model, has_custom, lambda copy: Rewriter(CUSTOM).rewrite(copy).changed)
    spelled = rewritten(spelled, has_blocks, lambda copy: Rewriter(BLOCK_WEIGHTS).rewrite(copy).changed)
    return integer_form(spelled, _on_elements)


def _on_elements() -> RuleSet:
    from tract_llvm.native_form.elements import ON_ELEMENTS, unpacked  # most models do without

    return RuleSet([unpacked, *ON_ELEMENTS])
