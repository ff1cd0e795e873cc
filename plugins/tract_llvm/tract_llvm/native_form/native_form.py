"""The form of a model that kernels are made for: what compilers rewrite before they decide on kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tract_core.data import DatumType
from tract_core.model.bodies import OpWithBodies, bodies_of, map_bodies
from tract_core.model.declutter import rewrite_by
from tract_core.model.graph import InletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, Rewriter, RuleSet, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_llvm.native_form.table import RULES

_BYTES: Final = (DatumType.U8, DatumType.I8)


def integer_form(model: TypedModel, others: Callable[[], RuleSet]) -> TypedModel:
    """The model with its quantised arithmetic on integers: the very same one where no rule is about it.

    ``others``: rules for what those of the table ``native_rules`` leave; most models do without.
    """

    def rewrite(copy: TypedModel) -> bool:
        changed = rewrite_by(RULES, copy).changed
        return Rewriter(others()).rewrite(copy).changed or changed

    return rewritten(model, _is_quantised, rewrite)


def rewritten(
    model: TypedModel, concerns: Callable[[TypedModel], bool], rewrite: Callable[[TypedModel], bool]
) -> TypedModel:
    """A copy of a model that was rewritten, and its bodies too; the very same one where nothing changed.

    ``concerns``: whether a model may be one to rewrite, bodies aside; ``rewrite``: does so in place, and says whether
    it changed anything.
    """
    if not _has(concerns, model):
        return model
    copy = model.clone()
    changed = rewrite(copy)
    done: dict[int, tuple[TypedModel, TypedModel]] = {}
    """Bodies, by their ids, with what they became; what came out of one stays as it is."""

    def once(body: TypedModel) -> TypedModel:
        if id(body) not in done:
            found = rewritten(body, concerns, rewrite)
            done[id(body)] = body, found
            done.setdefault(id(found), (found, found))
        return done[id(body)][1]

    @rewrites(ANY_OP)
    def native_bodies(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
        """Scan, IfThenElse ... -> the same with their bodies rewritten"""
        found = map_bodies(op, once) if isinstance(op, OpWithBodies) else op
        return None if found is op else ModelPatch.replace_op(model, node, found)

    changed = Rewriter(RuleSet([native_bodies])).rewrite(copy).changed or changed
    copy.compact()
    return copy if changed else model


def _has(what: Callable[[TypedModel], bool], model: TypedModel) -> bool:
    """Whether that is in a model, or in one of its bodies."""
    if what(model):
        return True
    inside = (body for node in model.nodes if isinstance(node.op, OpWithBodies) for body in bodies_of(node.op))
    return any(_has(what, body) for body in inside)


def _is_quantised(model: TypedModel) -> bool:
    """Whether a tensor in it is of bytes, or an operator gives quantised sums."""
    bytes_ = any(outlet.fact.datum_type in _BYTES for node in model.nodes for outlet in node.outputs)
    return bytes_ or any(isinstance(node.op, Conv | EinSum) and node.op.q_output is not None for node in model.nodes)


def reads_blocks(model: TypedModel, inlet: InletId) -> bool:
    """Whether it is a product, or a look-up, which need not have all numbers of weights in memory."""
    return isinstance(model.nodes[inlet.node].op, EinSum | Gather | IndexedMatMul)
