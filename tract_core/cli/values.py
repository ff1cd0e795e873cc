"""Where the values of inputs come from: bundles, texts, or a seeded random generator."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.dims import evaluate, symbols_of
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact

Array = np.ndarray[Any, Any]

SEED: Final = 21242
"""The seed of random inputs, so that two runs see the same values."""


def read_bundle(path: str) -> dict[str, Array]:
    """The arrays of an .npz file by name. Raises InputError for anything else, pickled objects included."""
    try:
        with np.load(path, allow_pickle=False) as bundle:
            return {name.removesuffix(".npy"): bundle[name] for name in bundle.files}
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"not a readable .npz file: {error}", where=path) from None


def literal(fact: TypedFact, text: str) -> Array:
    """The array of ``1,2,3`` in the type and shape of ``fact``. Raises InputError when number or form do not fit."""
    dtype = fact.datum_type.numpy
    try:
        flat = np.array([float(token) for token in text.split(",")] if text.strip() else [], dtype=np.float64)
        return flat.astype(dtype).reshape(fact.shape.concrete)
    except ValueError:
        raise InputError(f"{text!r} is not {fact.shape.volume} numbers for {fact}") from None


def make_inputs(
    names: Sequence[str],
    facts: Sequence[TypedFact],
    *,
    bundle: Mapping[str, Array],
    random: bool,
    ranges: Sequence[str] = (),
    bindings: Sequence[str] = (),
) -> list[Array]:
    """A value for every input: the bundle's, else a random one if that is allowed.

    Raises InputError for an input without a value, and for a symbol whose size cannot be told.
    """
    symbols = _bindings(bindings)
    generator = np.random.default_rng(SEED)
    limits = _ranges(ranges, names)
    arrays: list[Array] = []
    for name, fact in zip(names, facts, strict=True):
        if name in bundle:
            arrays.append(np.asarray(bundle[name]))
        elif random:
            arrays.append(random_array(generator, name, fact, symbols, limits.get(name) or limits.get("")))
        else:
            raise InputError(
                f"input {name!r} ({fact}) has no value",
                hint="give it with --input-from-npz, or allow random values with -R",
            )
    return arrays


def random_array(
    generator: np.random.Generator,
    name: str,
    fact: TypedFact,
    symbols: Mapping[str, int],
    limits: tuple[float, float] | None = None,
) -> Array:
    """Floats between 0 and 1, integers between 0 and 9, unless ``limits`` say otherwise."""
    missing = sorted(frozenset[str]().union(*map(symbols_of, fact.shape)) - symbols.keys())
    if missing:
        hint = "give it, as in " + " ".join(f"--set {symbol}=1" for symbol in missing)
        raise InputError(f"input {name!r} ({fact}) has a size that is not known: {', '.join(missing)}", hint=hint)
    shape = tuple(evaluate(dim, symbols) for dim in fact.shape)
    kind = fact.datum_type.storage
    if kind.is_bool():
        return generator.integers(0, 2, shape).astype(np.bool_)
    if kind.is_integer():
        low, high = limits or (0, 10)
        return generator.integers(int(low), max(int(low) + 1, int(high)), shape).astype(kind.numpy)
    if not kind.is_float():
        raise InputError(f"there are no random values for {fact}", where=f"input {name!r}")
    low, high = limits or (0.0, 1.0)
    return generator.uniform(low, high, shape).astype(kind.numpy)


def _bindings(texts: Sequence[str]) -> dict[str, int]:
    """``SYM=INT`` each; later ones may use earlier ones."""
    from tract_core.cli.pipeline import split_setting
    from tract_core.dims import parse_dim

    values: dict[str, int] = {}
    for name, text in map(split_setting, texts):
        values[name] = evaluate(parse_dim(text), values)
    return values


def _ranges(texts: Sequence[str], names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """``[NAME=]A..B`` each; the empty name stands for all inputs."""
    limits: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, interval = text.rpartition("=")
        low, dots, high = interval.partition("..")
        try:
            limits[name] = (float(low), float(high))
        except ValueError:
            dots = ""
        if not dots or (name and name not in names):
            raise InputError(
                f"--random-range {text!r} is not of the form [NAME=]A..B", hint=f"inputs: {', '.join(names)}"
            )
    return limits
