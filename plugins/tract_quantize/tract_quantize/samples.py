"""What a model is calibrated with: one array for each input, for as many turns as there are.

A folder has `.npz` files, each with an array for every input by its name; or, for a model of one input, `.npy` files
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.texts import printable

ENDINGS: Final = (".npy", ".npz")


class Samples(Protocol):
    """Turns, each of which can be had again; whoever iterates has one at a time in memory."""

    def __len__(self) -> int:
        """How many turns there are."""
        ...

    def __iter__(self) -> Iterator[Sequence[Array]]:
        """The arrays of each turn, in the order of the model's inputs."""
        ...

    def where(self, turn: int) -> str:
        """What messages call a turn."""
        ...


class ListedSamples:
    """Turns that are in memory."""

    def __init__(self, turns: Sequence[Sequence[Array]], what: str = "sample") -> None:
        self._turns, self._what = turns, what

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Sequence[Array]]:
        return iter(self._turns)

    def where(self, turn: int) -> str:
        """Its number."""
        return f"{self._what} {turn}"


class FileSamples:
    """Turns in files, which are read one at a time."""

    def __init__(self, files: Sequence[Path], names: Sequence[str], kinds: Sequence[DatumType]) -> None:
        self._files, self._names, self._kinds = files, names, kinds

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Sequence[Array]]:
        return map(self._read, self._files)

    def where(self, turn: int) -> str:
        """The file."""
        return str(self._files[turn])

    def _read(self, path: Path) -> list[Array]:
        from tract_core.cli.values import of_type, read_array, read_bundle

        if path.suffix == ".npy":
            given = {self._names[0]: read_array(path)} if len(self._names) == 1 else {}
        else:
            given = read_bundle(str(path))
        missing = [name for name in self._names if name not in given]
        if missing:
            raise InputError(
                f"no array in it is called {missing[0]!r}, as an input is",
                where=str(path),
                hint=f"inputs: {', '.join(self._names)}; it has: {', '.join(map(printable, given)) or 'one array'}",
            )
        return [of_type(given[name], kind.numpy) for name, kind in zip(self._names, self._kinds, strict=True)]


def samples_in(folder: str | Path, model: TypedModel, most: int | None = None) -> FileSamples:
    """The turns in a folder, for a model: its files in the order of their names, the first ``most`` of them.

    Raises InputError where there is no such folder, where it has no `.npy` or `.npz` file, and where a model of several
    inputs finds `.npy` files; what is in the files, whoever reads them is told.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError("there is no such folder", where=str(folder), hint=_HINT)
    files = _files_in(path)[:most]
    names, facts = _inputs(model)
    if not files:
        raise InputError("there is no .npy or .npz file in it", where=str(folder), hint=_HINT)
    if len(names) != 1 and any(one.suffix == ".npy" for one in files):
        raise InputError(
            f"an .npy file holds one array, and the model has {len(names)} inputs", where=str(folder), hint=_HINT
        )
    return FileSamples(files, names, [fact.datum_type.storage for fact in facts])


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.suffix in ENDINGS and one.is_file())
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror or error}", where=str(folder), hint=_HINT) from None


_HINT: Final = (
    "each .npz file in it is one turn: numpy.savez('0.npz', NAME=array, ...); of one input, .npy files do too"
)


def random_samples(
    model: TypedModel, count: int, symbols: Mapping[str, int] | None = None, seed: int = 0
) -> ListedSamples:
    """Turns of random numbers, to try things: what they say of a model's error on real data is nothing.

    ``symbols``: sizes, 1 where nothing else is said. Raises InputError for less than one turn, and for a symbol that no
    input has.
    """
    from tract_core.cli.values import random_array

    if count < 1:
        raise InputError(f"{count} random samples are none")
    names, facts = _inputs(model)
    sizes = {name: 1 for fact in facts for name in sorted(fact.shape.symbols())}
    unknown = ", ".join(sorted((symbols or {}).keys() - sizes.keys()))
    if unknown:
        raise InputError(f"no input has a symbol {unknown}; there are: {', '.join(sizes) or 'none'}")
    sizes |= symbols or {}
    generator = np.random.default_rng(seed)
    turns = [
        [random_array(generator, name, fact, sizes) for name, fact in zip(names, facts, strict=True)]
        for _ in range(count)
    ]
    return ListedSamples(turns, "random sample")


def _inputs(model: TypedModel) -> tuple[list[str], list[TypedFact]]:
    return [model.outlet_name(one) for one in model.inputs], [model.outlet_fact(one) for one in model.inputs]
