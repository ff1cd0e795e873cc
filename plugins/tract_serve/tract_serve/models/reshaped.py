"""Between shapes of clients and those of the model, where a configuration names both (Triton's ``reshape``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tract_core.frozen import frozen
from tract_serve.config import ModelConfig
from tract_serve.errors import Failed
from tract_serve.tensors.ports import Port, Signature

Array = np.ndarray[Any, Any]
Sizes = tuple[int | None, ...]


@frozen
class PortReshape:
    """``outside``: sizes as clients have them; ``inside``: as the model does. ``None`` for those that may be any.

    These go from one to the other in their order.
    """

    outside: Sizes
    inside: Sizes

    def into(self, array: Array) -> Array:
        """A client's array as the model takes it."""
        return _reshaped(array, self.outside, self.inside)

    def out(self, array: Array) -> Array:
        """An array of the model as clients get it."""
        return _reshaped(array, self.inside, self.outside)


@frozen
class Reshapes:
    """``inputs``, ``outputs``: those of a model, in order; ``None`` for what has one shape. ``seen``: by clients."""

    seen: Signature
    inputs: tuple[PortReshape | None, ...]
    outputs: tuple[PortReshape | None, ...]

    @staticmethod
    def of(config: ModelConfig, signature: Signature) -> Reshapes | None:
        """Those that a configuration, which was checked, names; ``None`` where it names none."""
        batched = config.told.max_batch_size > 0
        given = {one.name: one for one in [*config.told.input, *config.told.output] if one.HasField("reshape")}
        if not given:
            return None
        inputs = [_of(port, given.get(port.name), batched=batched) for port in signature.inputs]
        outputs = [_of(port, given.get(port.name), batched=batched) for port in signature.outputs]
        seen = Signature(_seen(signature.inputs, inputs), _seen(signature.outputs, outputs))
        return Reshapes(seen, tuple(inputs), tuple(outputs))

    def into(self, arrays: Sequence[Array]) -> list[Array]:
        """Inputs as the model takes them."""
        pairs = zip(arrays, self.inputs, strict=True)
        return [array if one is None else one.into(array) for array, one in pairs]

    def out(self, arrays: Sequence[Array]) -> list[Array]:
        """Outputs as clients get them. Raises Failed where the model gives other shapes than it is said to."""
        try:
            pairs = zip(arrays, self.outputs, strict=True)
            return [array if one is None else one.out(array) for array, one in pairs]
        except ValueError:
            raise Failed("an output does not have the shape that the configuration reshapes") from None


def _of(port: Port, given: Any, *, batched: bool) -> PortReshape | None:
    if given is None:
        return None
    first: Sizes = port.sizes[:1] if batched else ()
    return PortReshape((*first, *_sizes(given.dims)), (*first, *_sizes(given.reshape.shape)))


def _sizes(dims: Sequence[int]) -> Sizes:
    return tuple(None if size < 0 else size for size in dims)


def _seen(ports: Sequence[Port], reshapes: Sequence[PortReshape | None]) -> tuple[Port, ...]:
    """The ports as clients see them."""
    return tuple(
        port if one is None else replace(port, sizes=one.outside, symbols=(None,) * len(one.outside))
        for port, one in zip(ports, reshapes, strict=True)
    )


def _reshaped(array: Array, before: Sizes, after: Sizes) -> Array:
    free = iter([found for found, size in zip(array.shape, before, strict=True) if size is None])
    return array.reshape([next(free) if size is None else size for size in after])
