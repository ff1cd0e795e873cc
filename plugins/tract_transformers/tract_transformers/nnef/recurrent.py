"""Steps of recurrent language models, as the registry ``tract_transformers`` spells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, TRANSFORMERS, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_transformers.ops.causal_conv import CausalConv1dUpdate
from tract_transformers.ops.gated_delta_rule import GatedDeltaRule

ROWS = Rows()

_RESULTS: Final = "-> (output: tensor<scalar>, final_state: tensor<scalar>)"
_CONV: Final = f"(input: tensor<scalar>, weight: tensor<scalar>, initial_state: tensor<scalar>) {_RESULTS}"
_RULE: Final = (
    "(query: tensor<scalar>, key: tensor<scalar>, value: tensor<scalar>, log_decay: tensor<scalar>,"
    f" beta: tensor<scalar>, initial_state: tensor<scalar>) {_RESULTS}"
)


@reads(
    ROWS,
    TRANSFORMERS,
    f"tract_transformers_causal_conv1d_update{_CONV}",
    f"tract_qwen35_causal_conv1d_update{_CONV}",
)
def read_causal_conv(call: Call) -> Sequence[OutletId]:
    """A convolution that goes on; its weights may have an axis of size 1 in the middle, as those of convolutions do."""
    x, weight, state = (call.input(name) for name in ("input", "weight", "initial_state"))
    if call.rank(weight) == 3 and call.shape(weight)[1] == 1:
        weight = call.wire.squeeze(weight, [1])
    return call.ops(CausalConv1dUpdate(), x, weight, state)


@ROWS.row(NNEF_WRITE, CausalConv1dUpdate)
def write_causal_conv(op: CausalConv1dUpdate, node: Spelling) -> Invocation | None:
    """By the first of its names."""
    return node.invoke("tract_transformers_causal_conv1d_update", *node.inputs, registry=TRANSFORMERS)


@reads(
    ROWS,
    TRANSFORMERS,
    f"tract_transformers_gdn_recurrent{_RULE}",
    f"tract_qwen35_gdn_recurrent{_RULE}",
)
def read_gated_delta_rule(call: Call) -> Sequence[OutletId]:
    """A memory that goes on."""
    names = ("query", "key", "value", "log_decay", "beta", "initial_state")
    return call.ops(GatedDeltaRule(), *map(call.input, names))


@ROWS.row(NNEF_WRITE, GatedDeltaRule)
def write_gated_delta_rule(op: GatedDeltaRule, node: Spelling) -> Invocation | None:
    """By the first of its names."""
    return node.invoke("tract_transformers_gdn_recurrent", *node.inputs, registry=TRANSFORMERS)
