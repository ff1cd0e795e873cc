"""Where the values of inputs come from: bundles, texts, or a seeded random generator."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.dims import evaluate, parse_dim, symbols_of
from tract_core.errors import DimError, InputError
from tract_core.model.fact import TypedFact
from tract_core.runtime.binding import bind_inputs

Array = np.ndarray[Any, Any]

SEED: Final = 21242
"""The seed of random inputs, so that two runs see the same values."""


_BOOLEANS: Final = {"1": True, "0": False, "true": True, "false": False}


def read_bundle(path: str) -> dict[str, Array]:
    """The arrays of an .npz file by name. Raises InputError for anything else, pickled objects included."""
    try:
        if not zipfile.is_zipfile(path):
            raise InputError(
                "it is no .npz file", where=path, hint="numpy.savez('inputs.npz', NAME=array, ...) writes one"
            )
        arrays: dict[str, Array] = {}
        with zipfile.ZipFile(path) as bundle:
            for entry in bundle.namelist():
                name = entry.removesuffix(".npy")
                if name in arrays:
                    raise InputError(f"there are two arrays of the name {name!r} in it", where=path)
                with bundle.open(entry) as file:
                    arrays[name] = _texts_as_objects(np.lib.format.read_array(file, allow_pickle=False))
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error):  # NumPy's own message says how to trust it
            raise InputError("an array in it holds Python objects, which are not read", where=path) from None
        raise InputError(f"not a readable .npz file: {error}", where=path) from None
    return arrays


def _texts_as_objects(array: Array) -> Array:
    return array.astype(object) if array.dtype.kind == "U" else array


def of_type(array: Array, wanted: np.dtype[Any]) -> Array:
    """An array of a bundle, whose bytes are taken as wanted where .npz files do not know the type, as bf16."""
    return array.view(wanted) if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize else array


def literal(fact: TypedFact, text: str) -> Array:
    """The array of ``1,2,3`` in the type and shape of ``fact``. Raises InputError when number or form do not fit."""
    kind = fact.datum_type.storage
    read = _BOOLEANS.__getitem__ if kind.is_bool() else int if kind.is_integer() else float
    try:
        elements = [read(token.strip().lower()) for token in text.split(",")] if text.strip() else []
        return np.array(elements, dtype=kind.numpy).reshape(fact.shape.concrete)
    except (ValueError, OverflowError, KeyError):
        raise InputError(f"{text!r} is not {fact.shape.volume} values for {fact}") from None


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

    ``bindings`` say the values of symbols; so do the shapes of the arrays in the bundle. Raises InputError for an input
    without a value, for a symbol whose size cannot be told or that no input has, and for arrays that do not fit.
    """
    fact_of = {name: fact for name, fact in zip(names, facts, strict=True) if name in bundle}
    given = {name: of_type(bundle[name], fact.datum_type.storage.numpy) for name, fact in fact_of.items()}
    symbols = bind_inputs(list(fact_of), list(fact_of.values()), list(given.values()), _bindings(bindings, facts))
    generator = np.random.default_rng(SEED)
    limits = _ranges(ranges, names)
    arrays: list[Array] = []
    for name, fact in zip(names, facts, strict=True):
        if name in bundle:
            arrays.append(given[name])
        elif random:
            arrays.append(random_array(generator, name, fact, symbols, limits.get(name) or limits.get("")))
        else:
            there = f"the bundle has {', '.join(bundle)}; " if bundle else ""
            raise InputError(
                f"input {name!r} ({fact}) has no value",
                hint=f"{there}give it with --input-from-npz, or allow random values with -R",
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


def _bindings(texts: Sequence[str], facts: Sequence[TypedFact]) -> dict[str, int]:
    """``SYM=INT`` each; later ones may use earlier ones. Raises InputError for symbols that no input has."""
    from tract_core.cli.pipeline import split_setting

    values: dict[str, int] = {}
    used = frozenset[str]().union(*(fact.shape.symbols() for fact in facts))
    for name, text in map(split_setting, texts):
        try:
            dim = parse_dim(text)
            values[name] = evaluate(dim, values)
        except DimError as error:
            raise InputError(f"--set {name}={text}: {error.problem}", hint="write it as in --set B=1") from None
        if values[name] < 0:
            raise InputError(f"--set {name}={text}: a size is not negative")
        used |= symbols_of(dim)
    unknown = ", ".join(sorted(values.keys() - used))
    if unknown:
        known = ", ".join(sorted(used)) or "none"
        raise InputError(f"--set: no input has a symbol {unknown}; there are: {known}")
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
