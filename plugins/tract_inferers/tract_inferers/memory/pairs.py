"""Which output of a recurrent policy goes to which of its inputs at the next step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_inferers.slots import Slot, Slots, listed


@frozen
class RecurrentInfo:
    """The output ``outkey`` of a step is the input ``inkey`` of the next step of that agent."""

    inkey: str
    outkey: str


def find_pairs(inputs: Slots, outputs: Slots) -> list[RecurrentInfo]:
    """The pairs among inputs and outputs that have the same shape and type, in the order of the inputs.

    First those of the same name; then, of the others, those whose names are alike without the words that tell a state
    from the one after it, as ``h_in`` and ``h_out``, ``state`` and ``next_state``, ``past_x`` and ``present_x``; then
    those that are alike without a number at the end too, as ``h0`` and ``hn``, ``x.1`` and ``x``.

    Raises InputError where there is none, and where an input is like several outputs or an output like several inputs.
    """
    pairs: dict[str, str] = {}
    for stem in (_same, _without_words, _without_number):
        left = [slot for slot in inputs if slot.name not in pairs]
        taken = set(pairs.values())
        pairs |= _alike(left, [slot for slot in outputs if slot.name not in taken], stem)
    if not pairs:
        raise _refused("no output has the name, shape and type of an input", inputs, outputs)
    return [RecurrentInfo(slot.name, pairs[slot.name]) for slot in inputs if slot.name in pairs]


def _alike(inputs: Slots, outputs: Slots, stem: Callable[[str], str]) -> dict[str, str]:
    groups: dict[tuple[object, ...], tuple[list[str], list[str]]] = {}
    for side, slots in enumerate((inputs, outputs)):
        for slot in slots:
            if stem(slot.name):
                group = groups.setdefault((stem(slot.name), slot.shape, slot.dtype), ([], []))
                group[side].append(slot.name)
    found = [(given, back) for given, back in groups.values() if given and back]
    for given, back in found:
        if len(given) > 1 or len(back) > 1:
            problem = f"inputs {_named(given)} and outputs {_named(back)} are alike, so it is not clear which are pairs"
            raise _refused(problem, inputs, outputs)
    return {given[0]: back[0] for given, back in found}


_WORDS: Final = frozenset(
    {
        *("in", "out", "input", "output", "past", "present", "next", "new", "updated", "current", "cur"),
        *("prev", "previous", "old", "last", "init", "initial", "final"),
    }
)
_TIME: Final = re.compile(r"[01nt]$")


def _same(name: str) -> str:
    return name


def _without_words(name: str) -> str:
    return "_".join(_words(name))


def _without_number(name: str) -> str:
    """Without the number or the time at the end, ``x.1`` as ``h0``, ``hn``, ``h_t``, where something is left."""
    words = _words(name)
    if len(words) > 1 and (words[-1].isdigit() or words[-1] in {"n", "t"}):
        words.pop()
    elif words and len(words[-1]) > 1:
        words[-1] = _TIME.sub("", words[-1])
    return "_".join(words)


def _words(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.partition(":")[0]).lower()
    return [word for word in re.split(r"[^a-z0-9]+", spaced) if word and word not in _WORDS]


def _named(found: list[str]) -> str:
    return " and ".join(map(repr, found))


def _refused(problem: str, inputs: Slots, outputs: Slots) -> InputError:
    hint = "say which: RecurrentTracker.new(policy, [RecurrentInfo('h_in', 'h_out')])"
    return InputError(f"{problem}; inputs: {_listed(inputs)}; outputs: {_listed(outputs)}", hint=hint)


def _listed(slots: Slots) -> str:
    return f"[{listed(slots)}]"


def checked_pairs(pairs: list[RecurrentInfo], inputs: Slots, outputs: Slots) -> list[tuple[Slot, Slot]]:
    """The slots of each pair. Raises InputError where shapes or types differ, for a name that is in two, for none."""
    if not pairs:
        raise _refused("there are no pairs", inputs, outputs)
    for what, keys in (("input", [one.inkey for one in pairs]), ("output", [one.outkey for one in pairs])):
        twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if twice is not None:
            raise InputError(f"{what} {twice!r} is in two pairs", where="memory")
    given, back = ({slot.name: slot for slot in slots} for slots in (inputs, outputs))
    found = [(given[one.inkey], back[one.outkey]) for one in pairs]
    for before, after in found:
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise InputError(f"input {before} and output {after} have different shapes or types", where="memory")
    return found
