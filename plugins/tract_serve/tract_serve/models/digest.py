"""Which model a state belongs to: a digest of all that a run depends on, the same in every process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tract_core.data import Constant
from tract_core.digests import digest_of
from tract_core.model.fields import leaves
from tract_core.model.typed import TypedModel
from tract_core.version import version

if TYPE_CHECKING:
    from tract_core import Runnable


def digest_of_model(runnable: Runnable) -> str:
    """That of a model that is ready: of its nodes, what they hold, and of what runs it.

    How many threads a run takes is left out: states are the same for any number.
    """
    runtime = runnable.runtime
    options = sorted((name, value) for name, value in runtime.options().items() if name != "threads")
    return digest_of("sequences", version(), runtime.name(), repr(options), *_told(runnable.typed))


def _told(model: TypedModel) -> Iterator[str]:
    yield repr([(outlet.node, outlet.slot) for outlet in [*model.inputs, *model.outputs]])
    for number in model.eval_order():
        node = model.nodes[number]
        kind = type(node.op)
        yield f"{number} {kind.__module__}.{kind.__qualname__} {[(one.node, one.slot) for one in node.inputs]}"
        for leaf in leaves(node.op):
            if isinstance(leaf, TypedModel):
                yield from _told(leaf)
            else:
                yield leaf.digest.hex() if isinstance(leaf, Constant) else repr(leaf)
