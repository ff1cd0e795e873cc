"""Where the values of inputs come from: bundles, texts, or a seeded random generator."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from shlex import quote
from typing import Any, Final, cast

import ml_dtypes
import numpy as np

from tract_core.cli.readings import SEED, Bindings, ValueRange, what_else
from tract_core.data import DatumType
from tract_core.dims import evaluate, symbols_of
from tract_core.dims.names import write_name
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.runtime.misfits import bind_inputs

Array = np.ndarray[Any, Any]

LARGEST: Final = np.iinfo(np.int64).max

NO_BINDINGS: Final = Bindings({}, frozenset())


def read_bundle(path: str) -> dict[str, Array]:
    """The arrays of an .npz file by name. Raises InputError for anything else, pickled objects included."""
    try:
        if not zipfile.is_zipfile(path):
            hint = "numpy.savez('inputs.npz', NAME=array, ...) writes one"
            raise InputError(f"it is no .npz file: {what_else(path)}", where=path, hint=hint)
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


def read_array(path: Path) -> Array:
    """The array of an .npy file. Raises InputError for anything else, pickled objects included."""
    try:
        array: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        if "allow_pickle" in str(error):  # NumPy's own message says how to trust it
            problem = "it is no .npy file, or holds Python objects, which are not read"
            raise InputError(problem, where=str(path), hint=f"numpy.save('{path.name}', array) writes one") from None
        raise InputError(f"not a readable .npy file: {error}", where=str(path)) from None
    if not isinstance(array, np.ndarray):
        raise InputError("it holds several arrays", where=str(path), hint="--input-from-npz reads bundles")
    return _texts_as_objects(cast("Array", array))


def _texts_as_objects(array: Array) -> Array:
    return array.astype(object) if array.dtype.kind == "U" else array


def of_type(array: Array, wanted: np.dtype[Any]) -> Array:
    """An array of a bundle, whose bytes are taken as wanted where .npz files do not know the type, as bf16."""
    return array.view(wanted) if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize else array


def holds_floats(array: Array) -> bool:
    """Whether the elements of an array are floats."""
    known = not array.dtype.hasobject and array.dtype.kind != "U" and array.dtype.names is None
    return known and DatumType.from_numpy(array.dtype).is_float()


def make_inputs(
    names: Sequence[str],
    facts: Sequence[TypedFact],
    *,
    bundle: Mapping[str, Array],
    random: bool,
    ranges: Sequence[ValueRange] = (),
    bindings: Bindings = NO_BINDINGS,
    seed: int = SEED,
) -> list[Array]:
    """A value for every input: the bundle's, else a random one if that is allowed.

    ``bindings`` say the values of symbols; so do the shapes of the arrays in the bundle. Raises InputError for an input
    without a value, for a symbol whose size cannot be told or that no input has, and for arrays that do not fit.
    """
    fact_of = {name: fact for name, fact in zip(names, facts, strict=True) if name in bundle}
    given = {name: of_type(bundle[name], fact.datum_type.storage.numpy) for name, fact in fact_of.items()}
    _check_names(names, facts, ranges, bindings)
    symbols = bind_inputs(list(fact_of), list(fact_of.values()), list(given.values()), bindings.values)
    generator = np.random.default_rng(seed)
    limits = {one.name: one for one in ranges}
    arrays: list[Array] = []
    for name, fact in zip(names, facts, strict=True):
        if name in bundle:
            arrays.append(given[name])
        elif random:
            arrays.append(random_array(generator, name, fact, symbols, limits.get(name) or limits.get("")))
        else:
            there = f"given are {', '.join(bundle)}; " if bundle else ""
            raise InputError(
                f"input {name!r} ({fact}) has no value",
                hint=f"{there}give it with --input {quote(name)}=FILE.npy or --input-from-npz, "
                "or allow random values with -R",
            )
    return arrays


def random_array(
    generator: np.random.Generator,
    name: str,
    fact: TypedFact,
    symbols: Mapping[str, int],
    limits: ValueRange | None = None,
) -> Array:
    """Floats between 0 and 1, integers between 0 and 9, unless ``limits`` say otherwise.

    Raises InputError for sizes that are not known, and for limits that the element type does not reach.
    """
    missing = sorted(frozenset[str]().union(*map(symbols_of, fact.shape)) - symbols.keys())
    if missing:
        hint = "give it, as in " + " ".join(f"--set {quote(write_name(symbol))}=1" for symbol in missing)
        raise InputError(f"input {name!r} ({fact}) has a size that is not known: {', '.join(missing)}", hint=hint)
    shape = tuple(evaluate(dim, symbols) for dim in fact.shape)
    kind = fact.datum_type.storage
    if kind.is_bool():
        return generator.integers(0, 2, shape).astype(np.bool_)
    if kind.is_integer():
        first, end = _integers(kind, limits) if limits else (0, 10)
        wide = np.uint64 if end > LARGEST else np.int64
        return generator.integers(first, end, shape, dtype=wide).astype(kind.numpy)
    if not kind.is_float():
        raise InputError(f"there are no random values for {fact}", where=f"input {name!r}")
    if limits and max(abs(limits.low), abs(limits.high)) > _largest(kind):
        raise _beyond(limits, kind)
    low, high = limits[1:] if limits else (0.0, 1.0)
    return generator.uniform(low, high, shape).astype(kind.numpy)


def _largest(kind: DatumType) -> float:
    """The largest number of a float type."""
    return float(cast("Any", ml_dtypes.finfo(kind.numpy)).max)


def _integers(kind: DatumType, limits: ValueRange) -> tuple[int, int]:
    """The first integer of a range, and the one behind the last. Raises InputError where there is none."""
    first, end = ceil(limits.low), ceil(limits.high)
    end = max(end, first + 1) if limits.low == first else end  # A..A is A
    if first >= end:
        raise InputError(f"--random-range: there is no integer from {limits.low} to {limits.high}")
    known = ml_dtypes.iinfo(kind.numpy)
    if first < known.min or end - 1 > known.max:
        raise _beyond(limits, kind)
    return first, end


def _beyond(limits: ValueRange, kind: DatumType) -> InputError:
    where = f"input {limits.name!r}" if limits.name else None
    problem = f"--random-range {limits.low:g}..{limits.high:g} is more than {kind.short} holds"
    return InputError(problem, where=where, hint="choose a smaller range")


def _check_names(
    names: Sequence[str], facts: Sequence[TypedFact], ranges: Sequence[ValueRange], bound: Bindings
) -> None:
    """Raises InputError for inputs and symbols that flags name and the model has not."""
    used = frozenset[str]().union(*(fact.shape.symbols() for fact in facts))
    unknown = ", ".join(sorted(bound.values.keys() - used - bound.helpers))
    if unknown:
        known = ", ".join(sorted(used)) or "none"
        raise InputError(f"--set: no input has a symbol {unknown}; there are: {known}")
    wrong = [one.name for one in ranges if one.name and one.name not in names]
    if wrong:
        raise InputError(f"--random-range: there is no input {wrong[0]!r}", hint=f"inputs: {', '.join(names)}")
