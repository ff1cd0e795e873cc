"""Symbolic sizes of chains of windows, crops, pads, strides and sums are those that numbers give, and stay short."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from principles.size_chains import Step, program, wired

from tract_core.dims import evaluate, symbol
from tract_core.errors import InputError
from tract_core.model.graph import OutletId
from tract_core.model.refine import simplify_sizes
from tract_core.model.typed import TypedModel
from tract_core.runtime.conditions import check_conditions

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 24, 37, 64, 99, 1000, 5040)
LONGEST = 80
"""Characters of a size."""
LONGEST_SUM = 200
"""Characters of one that is a sum of products."""

SEEDS = st.integers(0, 2**32)


def _accepted(seed: int, length: int, names: list[str]) -> tuple[list[Step], TypedModel, list[OutletId]]:
    """The steps of a program that are not refused for every length, a model of them, and what each gives."""
    steps = program(seed, length)
    _, made = wired(steps, [symbol(name) for name in names])
    steps = [step for step, found in zip(steps, made, strict=True) if found is not None]
    model, made = wired(steps, [symbol(name) for name in names])
    outlets = [outlet for outlet in made if outlet is not None]
    assert len(outlets) == len(steps)
    return steps, model, outlets


def _values(model: TypedModel, lengths: Mapping[str, int]) -> dict[str, int] | None:
    """The values of all symbols, or ``None`` where a run with these lengths is refused."""
    values = dict(lengths)
    model.symbols.definitions.complete(values)
    try:
        check_conditions(model, values)
    except InputError:
        return None
    return values


def _check(seed: int, length: int, lengths: list[Mapping[str, int]]) -> int:
    """Compare each size, before and after all that is known was used, with the number; returns how many there were."""
    names = list(lengths[0])
    steps, model, outlets = _accepted(seed, length, names)
    before = {outlet: model.outlet_fact(outlet).shape for outlet in outlets}
    simplify_sizes(model)
    compared = 0
    for chosen in lengths:
        numbers, made = wired(steps, [chosen[name] for name in names])
        values = _values(model, chosen)
        if values is None:
            continue  # a bound of a crop, taken to be inside, may be told more strictly than NumPy does
        for outlet, other in zip(outlets, made, strict=True):
            assert other is not None, f"with {chosen}, only the model of numbers refuses {model.nodes[outlet.node]}"
            wanted = tuple(numbers.outlet_fact(other).shape)
            for shape in (before[outlet], model.outlet_fact(outlet).shape):
                assert tuple(evaluate(size, values) for size in shape) == wanted, (chosen, str(shape))
                compared += len(shape)
    for node in model.live_nodes():
        for size in (size for outlet in node.outputs for size in outlet.fact.shape):
            is_sum = not any(sign in str(size) for sign in "(#/")
            assert len(str(size)) <= (LONGEST_SUM if is_sum else LONGEST)
    return compared


@given(seed=SEEDS, length=st.integers(1, 12))
def test_sizes_of_one_symbol(seed: int, length: int) -> None:
    _check(seed, length, [{"S": size} for size in LENGTHS])


@given(seed=SEEDS, length=st.integers(1, 12), shift=st.integers(0, len(LENGTHS)))
def test_sizes_of_two_symbols(seed: int, length: int, shift: int) -> None:
    rolled = [*LENGTHS[shift:], *LENGTHS[:shift]]
    alike = [{"S": size, "T": size} for size in LENGTHS]
    stretched = [{"S": size, "T": 1} for size in LENGTHS]
    _check(seed, length, [*alike, *stretched, *({"S": s, "T": t} for s, t in zip(LENGTHS, rolled, strict=True))])


@settings(max_examples=10)
@given(seed=SEEDS)
def test_sizes_of_long_chains(seed: int) -> None:
    _check(seed, 80, [{"S": size} for size in LENGTHS])


def test_there_are_many_sizes() -> None:
    """What is compared is not nothing, as it would be if nearly all lengths were refused."""
    assert sum(_check(seed, 10, [{"S": size} for size in LENGTHS]) for seed in range(150)) >= 50_000
