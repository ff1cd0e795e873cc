"""A compiled model as Python calls it. This file needs NumPy alone: packages of models hold a copy of it."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

Arrays = Mapping[str, "tuple[tuple[int | str, ...], str]"]
"""The shapes and the types of arrays, in order, by their names. Open sizes are texts."""


class ToldSizes(NamedTuple):
    """What there is of sizes that inputs tell.

    ``memory(sizes ...)``: how many bytes a run works in, 0 where sizes cannot be these; ``shapes(sizes ..., address)``
    writes the sizes of all inputs and outputs there, as integers of 64 bits. ``found``: for each size, the number of
    the input and the axis that tell it, with what it is multiplied by, and what is added then.
    """

    memory: Callable[..., int]
    shapes: Callable[..., int]
    found: tuple[tuple[int, int, int, int], ...]


class ObjectFunctions(NamedTuple):
    """A model without memory to run in.

    ``start(memory)`` makes a piece of memory ready, and ``run(memory, inputs ..., outputs ...)`` runs the model in it,
    and gives 0 where that went well; both take addresses. ``memory``: how many bytes that is; ``alignment``: at a
    multiple of which it begins. ``inputs``, ``outputs``: what is given and what comes back. ``keeps``: whether anything
    stays from run to run. ``held``: what is there as long as the functions are called. ``sizes``: what there is of open
    sizes, which come behind the memory of a run.
    """

    start: Callable[[int], Any]
    run: Callable[..., int]
    memory: int
    alignment: int
    inputs: Arrays
    outputs: Arrays
    keeps: bool
    held: Any = None
    sizes: ToldSizes | None = None


class StandaloneModel:
    """A model with memory of its own, in which one thread at a time runs it."""

    def __init__(self, code: ObjectFunctions) -> None:
        self._code, self._in_use = code, allocate_lock()
        self._sizes: tuple[int, ...] = ()
        self._shapes: list[tuple[Any, ...]] = [shape for shape, _ in (*code.inputs.values(), *code.outputs.values())]
        self._begin(code.memory)

    def _begin(self, memory: int) -> None:
        """Have so many bytes to run in, in which nothing was run yet."""
        self._room = np.empty(memory + self._code.alignment, np.uint8)
        self._place: int = self._room.ctypes.data + -self._room.ctypes.data % self._code.alignment
        self._code.start(self._place)

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
        arrays = [self._array(value, name) for value, name in zip(self._in_order(inputs), code.inputs, strict=True)]
        with self._alone():
            if code.sizes is not None:
                self._take_sizes(arrays, code.sizes)
            given = list(map(self._fitting, arrays, code.inputs, self._shapes))
            kinds = (kind for _, kind in code.outputs.values())
            outputs = [np.empty(shape, kind) for shape, kind in zip(self._shapes[len(given) :], kinds, strict=True)]
            refused = code.run(self._place, *self._sizes, *(one.ctypes.data for one in (*given, *outputs)))
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

    def _take_sizes(self, arrays: Sequence[np.ndarray[Any, Any]], sizes: ToldSizes) -> None:
        """Find the open sizes, and have the shapes and the memory for them."""
        for array, (name, (shape, _)) in zip(arrays, self._code.inputs.items(), strict=True):
            if array.ndim != len(shape):
                raise self._misfit(name, array, shape)
        found = tuple((arrays[number].shape[axis] - rest) // factor for number, axis, factor, rest in sizes.found)
        if found == self._sizes:
            return
        ranks = [len(shape) for shape in self._shapes]
        ends = np.cumsum(ranks)
        written = np.zeros(int(ends[-1]), np.int64)
        memory = sizes.memory(*found)
        if not memory or sizes.shapes(*found, written.ctypes.data):
            told = [f"{name!r} of shape {one.shape}" for name, one in zip(self._code.inputs, arrays, strict=True)]
            raise self._refusal(ValueError, f"the model takes no inputs of these sizes together: {', '.join(told)}")
        if memory > len(self._room) - self._code.alignment:
            self._begin(memory)
        self._sizes = found
        self._shapes = [tuple(written[end - rank : end].tolist()) for end, rank in zip(ends, ranks, strict=True)]

    def _array(self, value: Any, name: str) -> np.ndarray[Any, Any]:
        """A value as an array of the type that an input has."""
        _, kind = self._code.inputs[name]
        array = np.asarray(value)
        if array.dtype != kind:
            problem = f"input {name!r} has elements of type {array.dtype}, the model takes {kind}"
            raise self._refusal(TypeError, problem)
        return array

    def _fitting(self, array: np.ndarray[Any, Any], name: str, shape: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        """An array of the shape that an input has, row by row."""
        if array.shape != shape:
            raise self._misfit(name, array, shape)
        return np.require(array, requirements=["C", "A"])

    def _misfit(self, name: str, array: np.ndarray[Any, Any], shape: tuple[Any, ...]) -> Exception:
        told = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
        return self._refusal(ValueError, f"input {name!r} has shape {array.shape}, the model takes {told}")

    def _refusal(self, kind: type[Exception], problem: str) -> Exception:
        """The error of a kind that says so."""
        return kind(problem)
