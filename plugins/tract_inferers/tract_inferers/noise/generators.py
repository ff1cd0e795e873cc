"""Where noise is from: generators that are asked for the noise of a batch."""

from __future__ import annotations

import secrets
from functools import cache
from numbers import Real
from threading import Lock
from typing import Any, Final, Protocol, Self, cast

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_inferers.noise.normals import normals
from tract_inferers.noise.philox import keys_of_rounds

Array = np.ndarray[Any, Any]
Numbers = np.ndarray[Any, np.dtype[np.uint64]]

_FLOATS: Final = frozenset({"float16", "bfloat16", "float32", "float64"})


class NoiseGenerator(Protocol):
    """What fills an input of a policy. Many threads may use one."""

    def generate(self, out: Array, *, ids: Numbers, steps: Numbers, brain: int) -> None:
        """Fill ``out``, of shape ``(rows, *shape)``, contiguous, of the element type of the input.

        ``ids``: the agent of each row, ``steps``: how many steps of it there were before, both of shape (rows,).
        ``brain``: the number of the brain in its runtime, and 0 elsewhere. Raises InputError for element types that it
        has no noise for. There may be no rows: so it is asked once when it is put in front of a policy.
        """
        ...


class HighQualityNoiseGenerator:
    """Standard normal noise that depends on the seed, the brain, the agent and the number of its step alone.

    So it is the same whoever shares the batch, whatever the order of rows, the number of calls and of threads.

    The words are those of Philox4x64-10 with the key ``(seed, brain)`` and the counter ``(block, step, agent, 0)``,
    blocks counting from 1: for each agent and step, what ``numpy.random.Philox(key=[seed, brain], counter=[0, step,
    agent, 0]).random_raw`` gives. Each two become two normals, see `normals`. ``seed``: from 0 to 2**64 - 1; where it
    is None, it is one that nobody knows before, and that `seed` tells. Two inputs whose generators have one seed get
    the same noise.

    The same on every machine up to the last digits of f64, which logarithm, sine and cosine of a NumPy may differ in.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = _checked_seed(secrets.randbits(64) if seed is None else seed)
        self._keys: dict[int, Numbers] = {}
        self._ahead: dict[tuple[object, ...], _Ahead] = {}

    def generate(self, out: Array, *, ids: Numbers, steps: Numbers, brain: int) -> None:
        """See `NoiseGenerator`. Raises InputError for types other than f16, bf16, f32 and f64."""
        _check_float(out.dtype)
        if not out.size:
            return
        if 2 * _blocks(out) > _BLOCKS_AHEAD:  # nothing is gained by computing ahead, and what is kept would be large
            normals(out.reshape(len(out), -1), self._keys_of(brain), ids, steps)
            return
        place = brain, out.shape, out.dtype, int(ids[0])
        ahead = self._ahead.get(place)
        turn = None if ahead is None else ahead.turn_of(ids, steps)
        if ahead is None or turn is None or turn == len(ahead.values):
            turns = 1 if turn is None else _turns_after(turn, out)
            if len(self._ahead) >= _KEPT:
                self._ahead.clear()
            ahead = self._ahead[place] = self._computed(out, ids, steps, brain, turns)
            turn = 0
        out[...] = ahead.values[turn]

    def _computed(self, out: Array, ids: Numbers, steps: Numbers, brain: int, turns: int) -> _Ahead:
        """The noise of so many steps of these agents, for arrays such as ``out``."""
        later = (steps + np.arange(turns, dtype=np.uint64)[:, None]).ravel()
        values = np.empty((turns, *out.shape), out.dtype)
        normals(values.reshape(len(later), -1), self._keys_of(brain), np.tile(ids, turns), later)
        return _Ahead(ids.copy(), steps.copy(), values)

    def _keys_of(self, brain: int) -> Numbers:
        keys = self._keys.get(brain)
        if keys is None:
            keys = self._keys.setdefault(brain, keys_of_rounds(self.seed, brain))
        return keys


@frozen
class _Ahead:
    """Noise of agents for some steps, computed in one go: for few agents, a go takes as long for one step as for many.

    ``ids``, ``steps``: those of the first step, shape (rows,). ``values``: shape (turns, rows, *shape).
    """

    ids: Numbers
    steps: Numbers
    values: Array

    def turn_of(self, ids: Numbers, steps: Numbers) -> int | None:
        """Which of ``values`` this step is, or the one right behind them; None where it is another.

        The first agent is the same; the generator has looked it up by that.
        """
        turn = (int(steps[0]) - int(self.steps[0])) % 2**64
        if turn > len(self.values) or (len(ids) > 1 and not (ids == self.ids).all()):
            return None
        return turn if len(ids) == 1 or (steps - self.steps == turn).all() else None


_KEPT: Final = 64
"""Batches, by brain, shape, type and first agent, whose noise is computed ahead: 3 MiB at the most."""

_BLOCKS_AHEAD: Final = 1024
"""Blocks of four words that are computed ahead, at the most."""


def _turns_after(turns: int, out: Array) -> int:
    """How many steps to compute when so many were used: twice as many, so that little is wasted on who changes."""
    return min(2 * turns, _BLOCKS_AHEAD // _blocks(out))


def _blocks(out: Array) -> int:
    """Blocks of four words that one step of these agents takes."""
    return len(out) * -(-out.size // len(out) // 4)


class LowQualityNoiseGenerator:
    """Standard normal noise from one stream for all, NumPy's SFC64: cheap, and different with every order of calls.

    ``seed``: 0 or more; where it is None, it is one that nobody knows before, and that `seed` tells.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = _checked_seed(secrets.randbits(64) if seed is None else seed)
        self._stream = np.random.Generator(np.random.SFC64(self.seed))
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def generate(self, out: Array, *, ids: Numbers, steps: Numbers, brain: int) -> None:
        """See `NoiseGenerator`. Raises InputError for types other than f16, bf16, f32 and f64."""
        _check_float(out.dtype)
        with self._lock:
            if out.dtype.itemsize > 2:
                self._stream.standard_normal(dtype=out.dtype.type, out=out)
            else:
                out[...] = self._stream.standard_normal(out.shape, np.float32)


class ConstantGenerator:
    """The same value everywhere, for any element type that it fits."""

    def __init__(self, value: float) -> None:
        """Raises InputError for what is no number."""
        if not isinstance(value, Real):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"{value!r:.60} is no number")
        self.value = value

    @classmethod
    def for_value(cls, value: float) -> Self:
        """``value`` everywhere."""
        return cls(value)

    @classmethod
    def ones(cls) -> Self:
        """1 everywhere."""
        return cls(1.0)

    @classmethod
    def zeros(cls) -> Self:
        """0 everywhere."""
        return cls(0.0)

    def generate(self, out: Array, *, ids: Numbers, steps: Numbers, brain: int) -> None:
        """See `NoiseGenerator`. Raises InputError for a type that does not have the value."""
        out[...] = _of_type(self.value, out.dtype)


@cache  # the name of a type takes a microsecond
def _check_float(dtype: np.dtype[Any]) -> None:
    if dtype.name not in _FLOATS:
        raise InputError(f"has the type {dtype.name}; normal noise is f16, bf16, f32 or f64")


def _of_type(value: float, dtype: np.dtype[Any]) -> Array:
    """A number as an array without axes. Raises InputError where the type does not have it; floats are rounded."""
    one = np.empty((), dtype)
    try:
        with np.errstate(over="raise", invalid="raise"):
            one[...] = value
            if dtype.kind not in "biu" or bool(one == value):
                return one
    except (TypeError, ValueError, OverflowError, FloatingPointError):
        pass
    raise InputError(f"{value!r:.60} is no {dtype.name}")


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= seed < 2**64:
        return int(cast("int", seed))
    raise InputError(f"a seed is an integer from 0 to 2**64 - 1, got {seed!r:.60}")
