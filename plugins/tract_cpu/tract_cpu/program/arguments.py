"""The arguments of a call by name, put in the order that the signature of its kernel says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from tract_llvm.program.loops import StridedLoop
from tract_llvm.program.views import View

from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.kernels.signature import Each, Item, Memories, Memory, Signature, Size, Sizes
from tract_cpu.program.program import Argument, NativeStep, ProgramLoop, Step

Given: TypeAlias = "Argument | Sequence[Argument] | Sequence[Mapping[str, Given]]"
"""A value; the values of several arguments; for arguments that come again, those of each thing by their names."""


def arguments(plan: KernelPlan, /, **given: Given) -> tuple[Argument, ...]:
    """The arguments of a call of a kernel. Raises TypeError where names or counts are not those of its signature."""
    return tuple(_in_order(f"kernel {plan.name!r}", plan.signature.items, given))


def each_loop(found: Sequence[StridedLoop]) -> list[dict[str, Given]]:
    """What `Each.loop` wants."""
    return [{"size": loop.size, "strides": loop.strides} for loop in found]


def each_target(tensors: Sequence[View], found: Sequence[StridedLoop], axes: Sequence[int]) -> list[dict[str, Given]]:
    """What `Targets.declared` wants of tensors that move along loops, as the strides there say, and axes.

    The first strides of a loop are those of a tensor that is none of these.
    """
    return [
        {"tensor": view.address, "strides": [*(loop.strides[n] for loop in found), *(view.strides[a] for a in axes)]}
        for n, view in enumerate(tensors, start=1)
    ]


def begun(loop: ProgramLoop, step: Step) -> NativeStep:
    """The first step of a loop, which is told what moves: that comes behind its other arguments."""
    assert isinstance(step, NativeStep)  # whoever made the loop added it
    signature, found = step.kernel.signature, list(step.arguments)
    found[signature.place("moves")] = len(loop.moves)
    for place, far, back in loop.moves:
        move = {"place": place, "bytes": far, "factor": -1 if back else 1, "before": 0, "now": 0}
        found += _in_order("what moves in a loop", signature.rest, move)
    return replace(step, arguments=tuple(found))


def _in_order(where: str, items: Sequence[Item], given: Mapping[str, Given]) -> list[Argument]:
    found: list[Any] = []
    _put(found, where, items, given)
    return found


def _put(found: list[Any], where: str, items: Sequence[Item], given: Mapping[str, Given]) -> None:
    """Add values by name in the order of items. A model has thousands, so types are looked at by the cheapest means."""
    if len(given) != len(items) or not given.keys() >= {item.name for item in items}:
        raise TypeError(_other_names(where, items, given))
    for item in items:
        value, kind = given[item.name], type(item)
        if kind is Size or kind is Memory:
            if type(value) in _SEVERAL:
                raise TypeError(f"{where}, {item.name} takes one value, not {len(cast('list[Any]', value))}")
            found.append(value)
        elif isinstance(item, Each):
            for number, (one, its) in enumerate(zip(_several(where, item, value), item.rounds, strict=True)):
                if type(one) is not dict:
                    raise TypeError(f"{where}, {item.name}[{number}] takes names with values")
                _put(found, f"{where}, {item.name}[{number}]", its, cast("dict[str, Given]", one))
        else:
            several = _several(where, item, value)
            if dict in map(type, several):
                raise TypeError(f"{where}, {item.name} takes values without names")
            found.extend(several)


_SEVERAL: Final = (list, tuple)


def _several(where: str, item: Item, value: object) -> Sequence[Any]:
    """The values of an argument that has as many."""
    wanted = item.count if isinstance(item, Each | Memories | Sizes) else 1
    if type(value) not in _SEVERAL:
        raise TypeError(f"{where}, {item.name} takes {wanted} values, not one")
    if len(several := cast("Sequence[Any]", value)) != wanted:
        raise TypeError(f"{where}, {item.name} takes {wanted} values, not {len(several)}")
    return several


def _other_names(where: str, items: Sequence[Item], given: Mapping[str, Given]) -> str:
    names = [item.name for item in items]
    if missing := [name for name in names if name not in given]:
        return f"{where} lacks {', '.join(missing)}"
    unknown = [name for name in given if name not in names]
    return f"{where} takes no {', '.join(unknown)}, but {', '.join(names)}"


def named(signature: Signature, texts: Sequence[str]) -> str:
    """The texts of arguments with their names. Where there are too few, the names end; more are told without names."""
    left = iter(texts)
    told = _named(signature.items, left)
    rest = list(left)
    while signature.rest and rest:
        left = iter(rest)
        told.append(f"({' '.join(_named(signature.rest, left))})")
        rest = list(left)
    return " ".join([*told, *rest])


def _named(items: Sequence[Item], left: Iterator[str]) -> list[str]:
    found: list[str] = []
    for item in items:
        if isinstance(item, Each):
            value = f"({'; '.join(' '.join(_named(items, left)) for items in item.rounds)})"
        else:
            texts = list(islice(left, len(item.slots())))
            if isinstance(item, Size | Memory) and not texts:
                break
            value = texts[0] if isinstance(item, Size | Memory) else f"({' '.join(texts)})"
        found.append(f"{item.name}={value}")
    return found
