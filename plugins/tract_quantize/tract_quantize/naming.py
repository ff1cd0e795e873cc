"""Which nodes are meant by a user's patterns, and which models are refused whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from tract_core.errors import TransformError, meant
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear


def chosen(patterns: Sequence[str], names: Iterable[str]) -> frozenset[str]:
    """The names that patterns with ``*`` and ``?`` fit. A pattern that is a name means that one alone.

    Raises TransformError for a pattern that none fits.
    """
    there = list(names)
    found: set[str] = set()
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        fitting = [pattern] if pattern in there else [name for name in there if fnmatchcase(name, pattern)]
        if not fitting:
            near = "".join(f"; did you mean {name!r}?" for name in meant(pattern, there))
            raise TransformError(
                f"no product has a name like {pattern!r}", hint=f"{len(there)} nodes multiply by weights{near}"
            )
        found.update(fitting)
    return frozenset(found)


def exact(name: str) -> str:
    """A pattern that this name alone fits."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def check_not_quantized(model: TypedModel, what: str) -> None:
    """Raises TransformError for a model that computes with rounded tensors already."""
    rounded = [node.name for node in model.live_nodes() if _is_rounded(node.op)]
    if rounded:
        raise TransformError(
            f"{what}: the model is quantised already: {len(rounded)} nodes round, or hold what was rounded, "
            f"as {rounded[0]!r}",
            hint="quantise the model in floats that it was made from",
        )


def _is_rounded(op: object) -> bool:
    quantised = isinstance(op, (Conv, EinSum)) and op.q_output is not None
    return quantised or isinstance(op, (QuantizeLinear, DequantizeLinear, UnpackBlocks))
