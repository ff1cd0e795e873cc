"""The form of a model that kernels are made for: what this runtime rewrites before it decides on kernels."""

from __future__ import annotations

from tract_llvm.native_form.native_form import integer_form

from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import RuleSet, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.quantize import DequantizeLinear
from tract_cuda.group.blocks import packed_of


def native_form(model: TypedModel) -> TypedModel:
    """The model in that form: the very same one where no rule is about it."""
    return integer_form(model, _on_elements)


def _on_elements() -> RuleSet:
    from tract_llvm.native_form.elements import ON_ELEMENTS, unpacked  # most models do without these
    from tract_llvm.native_form.parameters import by_parts

    @rewrites(DequantizeLinear)
    def unpacked_elsewhere(model: TypedModel, node: TypedNode, op: DequantizeLinear) -> ModelPatch | None:
        """DequantizeLinear of constants -> `Const`, but where kernels unpack blocks as they read them"""
        return None if packed_of(model, node) is not None else unpacked(model, node)

    return RuleSet([by_parts, unpacked_elsewhere, *ON_ELEMENTS])
