"""A compiled model as Python calls it. This file needs NumPy alone: packages of models hold a copy of it."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

Arrays = Mapping[str, "tuple[tuple[int, ...], str]"]
"""The shapes and the types of arrays, in order, by their names."""


class ObjectFunctions(NamedTuple):
    """A model without memory to run in.

    ``start(memory)`` makes a piece of memory ready, and ``run(memory, inputs ..., outputs ...)`` runs the model in it,
    and gives 0 where that went well; both take addresses. ``memory``: how many bytes that is; ``alignment``: at a
    multiple of which it begins. ``inputs``, ``outputs``: what is given and what comes back. ``keeps``: whether anything
    stays from run to run. ``held``: what is there as long as the functions are called.
    """

    start: Callable[[int], Any]
    run: Callable[..., int]
    memory: int
    alignment: int
    inputs: Arrays
    outputs: Arrays
    keeps: bool
    held: Any = None


class StandaloneModel:
    """A model with memory of its own, in which one thread at a time runs it."""

    def __init__(self, code: ObjectFunctions) -> None:
        self._code, self._in_use = code, allocate_lock()
        self._room = np.empty(code.memory + code.alignment, np.uint8)
        self._place: int = self._room.ctypes.data + -self._room.ctypes.data % code.alignment
        code.start(self._place)

    @property
    def inputs(self) -> Arrays:
        """The shapes and the types of the inputs, in order, by their names."""
        return self._code.inputs

    @property
    def outputs(self) -> Arrays:
        """The same of the outputs."""
        return self._code.outputs

    def reset(self) -> None:
        """Forget what the model keeps from run to run, if it keeps anything. Raises RuntimeError as `run`."""
        with self._alone():
            self._code.start(self._place)

    def run(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order. ``inputs``: arrays, in order or by name.

        Raises TypeError or ValueError for what does not fit, IndexError where an index is beyond its axis, RuntimeError
        while another thread runs the model in the same memory.
        """
        code = self._code
        given = [self._fitting(value, name) for value, name in zip(self._in_order(inputs), code.inputs, strict=True)]
        outputs = [np.empty(shape, kind) for shape, kind in code.outputs.values()]
        addresses = [one.ctypes.data for one in (*given, *outputs)]
        with self._alone():
            refused = code.run(self._place, *addresses)
            if refused:
                code.start(self._place)
        if refused:
            raise self._refusal(IndexError, "the model could not be run on these inputs: an index is beyond its axis")
        return outputs

    def __call__(self, *inputs: Any, **named: Any) -> list[np.ndarray[Any, Any]]:
        """`run`, with the inputs in order or by name."""
        return self.run(named if named and not inputs else [*inputs, *named.values()])

    def __reduce__(self) -> Any:
        raise TypeError("the memory of a model cannot be copied or pickled: make another one")

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """No other thread is in this memory meanwhile."""
        if not self._in_use.acquire(blocking=False):
            raise self._refusal(RuntimeError, "another thread runs this model: each needs one with memory of its own")
        try:
            yield
        finally:
            self._in_use.release()

    def _in_order(self, inputs: Any) -> Sequence[Any]:
        names = self._code.inputs
        if isinstance(inputs, Mapping):
            return self._of_names(cast("Mapping[Any, Any]", inputs))
        if not isinstance(inputs, (list, tuple)):
            kind = type(inputs).__name__
            raise self._refusal(TypeError, f"inputs are given as a list, or by name; got {kind}")
        given = cast("Sequence[Any]", inputs)
        if len(given) != len(names):
            problem = f"{len(given)} inputs were given, the model takes {len(names)}: {', '.join(names)}"
            raise self._refusal(ValueError, problem)
        return given

    def _of_names(self, inputs: Mapping[Any, Any]) -> Sequence[Any]:
        names = self._code.inputs
        wrong = [*(f"there is no input {name!r}" for name in inputs if name not in names)]
        wrong += [f"input {name!r} is missing" for name in names if name not in inputs]
        if wrong:
            raise self._refusal(ValueError, f"{'; '.join(wrong)}; the inputs are {', '.join(names)}")
        return [inputs[name] for name in names]

    def _fitting(self, value: Any, name: str) -> np.ndarray[Any, Any]:
        shape, kind = self._code.inputs[name]
        array = np.asarray(value)
        if array.dtype != kind:
            problem = f"input {name!r} has elements of type {array.dtype}, the model takes {kind}"
            raise self._refusal(TypeError, problem)
        if array.shape != shape:
            raise self._refusal(ValueError, f"input {name!r} has shape {array.shape}, the model takes {shape}")
        return np.require(array, requirements=["C", "A"])

    def _refusal(self, kind: type[Exception], problem: str) -> Exception:
        """The error of a kind that says so."""
        return kind(problem)
