"""Policies as the flags describe them: from a file, with noise and memory around, and something to observe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tract_core.errors import InputError
from tract_inferers.builder import InfererBuilder
from tract_inferers.inferer import Inferer
from tract_inferers.memory.pairs import RecurrentInfo
from tract_inferers.memory.tracker import RecurrentTrackerWrapper
from tract_inferers.noise.epsilon import EpsilonInjectorWrapper
from tract_inferers.noise.generators import HighQualityNoiseGenerator
from tract_inferers.slots import Slot, Slots, as_slots
from tract_inferers.stateful import BaseWrapper, StatefulInferer
from tract_inferers.wrapper import InfererWrapper

Array = np.ndarray[Any, Any]

WHICH: Final = "name the pairs: -r IN:OUT,IN:OUT"


def builder_for(path: str, runtime: str) -> InfererBuilder:
    """What makes policies of a file. Raises ModelError, InputError with the name of the file."""
    return InfererBuilder.from_path(path, runtime=runtime)


def with_layers(inferer: Inferer, *, noise: str | None, memory: list[str] | None, seed: int = 0) -> StatefulInferer:
    """The policy with memory and noise around it.

    ``noise``: an input. ``memory``: pairs as ``in:out``, none of them for those that their names give; ``None`` for no
    memory. Raises InputError for names that are not there, and where there are no pairs.
    """
    stack: InfererWrapper = BaseWrapper()
    if memory is not None:
        pairs = [_pair(text, inferer) for text in memory]
        try:
            made = RecurrentTrackerWrapper
            stack = made.new(stack, inferer, pairs) if pairs else made.wrap(stack, inferer)
        except InputError as error:
            raise InputError(error.problem, where=error.where, hint=WHICH) from None
    if noise is not None:
        generator = HighQualityNoiseGenerator(seed)
        stack = EpsilonInjectorWrapper.with_generator(stack, inferer, generator, noise)
    return StatefulInferer(stack, inferer)


def _pair(text: str, inferer: Inferer) -> RecurrentInfo:
    """What ``in:out`` says. Names may have colons too: then it is split where both sides are names."""
    inputs, outputs = ({slot.name for slot in side} for side in _raw(inferer))
    places = [place for place, letter in enumerate(text) if letter == ":"]
    named = [place for place in places if text[:place] in inputs and text[place + 1 :] in outputs]
    place = (named or places)[0]
    return RecurrentInfo(text[:place], text[place + 1 :])


def _raw(inferer: Inferer) -> tuple[Slots, Slots]:
    return as_slots(inferer.raw_input_shapes()), as_slots(inferer.raw_output_shapes())


def observations(slots: Sequence[Slot], count: int, *, random: bool, seed: int) -> dict[str, Array]:
    """What agents 0 to ``count`` observe, by input, with the agents along axis 0.

    Agent i observes the value i in every element, as the element type has it; or, at ``random``, standard normal
    numbers, and zeros and ones where the type is not one of floats.
    """
    chance = np.random.default_rng(seed)
    return {slot.name: _random(slot, count, chance) if random else _counted(slot, count) for slot in slots}


def _counted(slot: Slot, count: int) -> Array:
    array = slot.empty(count)
    with np.errstate(over="ignore"):  # agents beyond what a type can say
        array.reshape(count, -1)[...] = np.arange(count).astype(slot.dtype)[:, None]
    return array


def _random(slot: Slot, count: int, chance: np.random.Generator) -> Array:
    shape = (count, *slot.shape)
    is_whole = slot.dtype.kind in "iub"
    return (chance.integers(0, 2, shape) if is_whole else chance.standard_normal(shape)).astype(slot.dtype)
