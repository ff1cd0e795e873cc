"""How long the texts of a model's sizes are."""

from __future__ import annotations

from tract_core.model.bodies import bodies_of
from tract_core.model.typed import TypedModel


def longest_size(model: TypedModel) -> str:
    """The text of the size with the most characters, in facts of the model and of its bodies; empty for none."""
    longest = ""
    for node in model.live_nodes():
        texts = [str(size) for outlet in node.outputs for size in outlet.fact.shape]
        longest = max([longest, *texts, *map(longest_size, bodies_of(node.op))], key=len)
    return longest
