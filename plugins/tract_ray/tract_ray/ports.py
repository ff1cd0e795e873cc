"""A prepared model as rows see it: arrays in and out, with their types and sizes.

What a model is called with is decided here; how rows become calls is decided in `rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.data import Container
from tract_core.errors import InputError, Unsupported, meant
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.api.fact import Fact
    from tract_core.api.runnable import Runnable
    from tract_core.plugins.keys import Array


@frozen
class Port:
    """An input or an output: ``name``, ``dtype`` of its elements, ``shape`` with ``None`` for symbolic sizes."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.name!r} ({shown(self.shape)} of {self.dtype.name})"


@frozen
class ScoredModel:
    """A model that is ready to run, by any number of threads.

    ``inputs``, ``outputs``: in order. ``run``: from an array for each input to one for each output; raises TractError.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    run: Callable[[Sequence[Array]], list[Array]]

    def place_of_output(self, name: str) -> int:
        """The number of an output. Raises InputError for a name that is none."""
        return _place(self.outputs, name, "output")

    def place_of_input(self, name: str) -> int:
        """The number of an input. Raises InputError for a name that is none."""
        return _place(self.inputs, name, "input")


def scored_runnable(runnable: Runnable) -> ScoredModel:
    """A model that a runtime prepared. Raises Unsupported where an input or output is no tensor."""
    inputs = map(_port, runnable.input_names(), runnable.input_facts())
    outputs = map(_port, runnable.output_names(), runnable.output_facts())

    def run(arrays: Sequence[Array]) -> list[Array]:
        return [np.ascontiguousarray(tensor.view()) for tensor in runnable.run(arrays)]

    return ScoredModel(tuple(inputs), tuple(outputs), run)


def shown(shape: Sequence[int | None]) -> str:
    """Sizes as a text: ``3,224,?``."""
    return ",".join("?" if size is None else str(size) for size in shape) or "one element"


def _port(name: str, fact: Fact) -> Port:
    kind = fact.datum_type()
    if isinstance(kind, Container):
        hint = "leave it out: see Model.transform, select_outputs"
        raise Unsupported(f"{name!r} is {kind}, and columns hold tensors", where=name, hint=hint)
    return Port(name, kind.storage.numpy, tuple(None if dim.symbols() else int(dim) for dim in fact.dims()))


def _place(ports: Sequence[Port], name: str, what: str) -> int:
    names = [port.name for port in ports]
    if name in names:
        return names.index(name)
    near = meant(str(name), names)
    hint = f"did you mean {near[0]!r}?" if near else None
    raise InputError(f"the model has no {what} {name!r}; it has {', '.join(map(repr, names))}", hint=hint)
