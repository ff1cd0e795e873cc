"""Check the arrays that a caller gives against the facts of a model's inputs, and find the values of the symbols."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import Container, DatumType
from tract_core.data.boxes import misfit
from tract_core.dims import SymbolScope, bind, evaluate, symbols_of
from tract_core.errors import DimError, FactError, InputError
from tract_core.model.fact import TypedFact
from tract_core.plugins.keys import Array


def bind_inputs(
    names: Sequence[str], facts: Sequence[TypedFact], arrays: Sequence[Array], known: dict[str, int] | None = None
) -> dict[str, int]:
    """The values of all symbols, from the shapes of the arrays (and from what is ``known`` before).

    Raises InputError for a wrong number of arrays, a wrong type, rank or size, and when two inputs disagree about a
    symbol.
    """
    if len(arrays) != len(facts):
        wanted = ", ".join(f"{name} ({fact})" for name, fact in zip(names, facts, strict=True)) or "none"
        raise InputError(f"{len(arrays)} inputs were given, the model takes {len(facts)}: {wanted}")
    bound = dict(known or {})
    origin: dict[str, str] = {}
    for name, fact, array in zip(names, facts, arrays, strict=True):
        if isinstance(fact.datum_type, Container):
            continue  # what it holds is looked at when the symbols are known
        _check_type(name, fact, array)
        before = set(bound)
        try:
            bound = bind(fact.shape, array.shape, bound)
        except DimError as error:
            raise _disagreement(name, fact, array, bound, origin, error=error) from None
        origin.update(dict.fromkeys(set(bound) - before, name))
    for name, fact, array in zip(names, facts, arrays, strict=True):
        _check_sizes(name, fact, array, bound, origin)
    return bound


def check_assertions(scope: SymbolScope, values: dict[str, int]) -> None:
    """Raises InputError when something does not hold that the model was simplified under, as ``S>=3``."""
    try:
        scope.check(values)
    except DimError as error:
        raise InputError(error.problem, hint=error.hint) from None


def _check_type(name: str, fact: TypedFact, array: Array) -> None:
    try:
        found = DatumType.from_numpy(array.dtype)
    except FactError as error:
        raise InputError(error.problem, where=f"input {name!r}") from None
    if found != fact.datum_type.storage:
        raise InputError(
            f"input is {found.short}, the model wants {fact}",
            where=f"input {name!r}",
            hint=_conversion(found, fact.datum_type.storage),
        )
    if array.ndim != fact.rank:
        raise InputError(
            f"input has rank {array.ndim} (shape {array.shape}), the model wants {fact}", where=f"input {name!r}"
        )


def _conversion(found: DatumType, wanted: DatumType) -> str | None:
    """How a caller would make an array of one type of another; ``None`` when that would make no sense."""
    if DatumType.STRING in (found, wanted) or (found.is_complex() and not wanted.is_complex()):
        return None
    name = wanted.numpy.name
    return f"convert it with .astype({name!r}), a tensor of PyTorch with .to(torch.{name})"


def _check_sizes(name: str, fact: TypedFact, array: Array, bound: dict[str, int], origin: dict[str, str]) -> None:
    if isinstance(fact.datum_type, Container):
        _check_container(name, fact, array, bound)
        return
    for axis, (dim, size) in enumerate(zip(fact.shape, array.shape, strict=True)):
        if isinstance(dim, int):
            if dim != size:
                raise InputError(f"axis {axis} has size {size}, the model wants {fact}", where=f"input {name!r}")
        elif symbols_of(dim) <= bound.keys() and evaluate(dim, bound) != size:
            raise InputError(
                f"axis {axis} has size {size}, but {_because(dim, bound, origin)}", where=f"input {name!r}"
            )


def _check_container(name: str, fact: TypedFact, array: Array, bound: dict[str, int]) -> None:
    holds = array.ndim == 0 and array.dtype.kind == "O"
    problem = misfit(array.item() if holds else array, fact.datum_type, bound)
    if problem is not None:
        raise InputError(problem, where=f"input {name!r}", hint=f"the model wants {fact}")


def _because(dim: object, bound: dict[str, int], origin: dict[str, str]) -> str:
    symbols = sorted(symbols_of(dim)) if not isinstance(dim, int) else []  # pyright: ignore[reportArgumentType]: a Dim
    values = " and ".join(
        f"{s} is {bound[s]}" + (f" by input {origin[s]!r}" if s in origin else "") for s in symbols if s in bound
    )
    return f"{dim} is wanted and {values}" if values else f"{dim} is wanted"


def _disagreement(
    name: str, fact: TypedFact, array: Array, bound: dict[str, int], origin: dict[str, str], *, error: DimError
) -> InputError:
    for axis, (dim, size) in enumerate(zip(fact.shape, array.shape, strict=True)):
        known = symbols_of(dim) if not isinstance(dim, int) else frozenset[str]()
        if known and known <= bound.keys() and evaluate(dim, bound) != size:
            text = f"axis {axis} has size {size}, but {_because(dim, bound, origin)}"
            return InputError(text, where=f"input {name!r}")
        if isinstance(dim, int) and dim != size:
            return InputError(f"axis {axis} has size {size}, the model wants {fact}", where=f"input {name!r}")
    return InputError(f"shape {array.shape} does not fit {fact}: {error.problem}", where=f"input {name!r}")
