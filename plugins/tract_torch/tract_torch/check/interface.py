"""What an archive takes and gives, and what of a module that is: arguments, results, and buffers that change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tract_core.frozen import frozen
from tract_torch.check.eager import EagerCall, Start
from tract_torch.naming import plain
from tract_torch.tensors import array_of
from tract_torch.wiring.states import after

Array = np.ndarray[Any, Any]


@frozen
class Interface:
    """The inputs and outputs of an archive, by their names, in order.

    ``arguments``: which tensor of the example an input is; ``held``: which buffer of the module, by its name there.
    Every input is in one of the two.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    arguments: Mapping[str, str]
    held: Mapping[str, str]

    @staticmethod
    def of(arguments: Mapping[str, str], held: Mapping[str, str], outputs: Iterable[str]) -> Interface:
        """One with the buffers behind the arguments."""
        return Interface((*arguments, *held), tuple(outputs), arguments, held)

    def given(self, start: Start) -> list[Array]:
        """What the archive is called with."""
        tensors = start.example.tensors()
        return [
            array_of(start.held[self.held[name]] if name in self.held else tensors[self.arguments[name]])
            for name in self.inputs
        ]

    def wanted(self, start: Start, turn: EagerCall) -> list[Array]:
        """What it has to give: all that was returned, then what was changed, as far as it gives that."""
        found = turn.outputs
        tensors, buffers = {**start.example.tensors(), **turn.changed}, {**start.held, **turn.held}
        values = {after(name): tensors[argument] for name, argument in self.arguments.items()}
        values |= {after(name): buffers[buffer] for name, buffer in self.held.items()}
        return [*found, *(array_of(values[name]) for name in self.outputs[len(found) :] if name in values)]


def held_inputs(model: torch.nn.Module, inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, str]:
    """The inputs of an archive that are buffers of a module, with their names in it: it gives them back, too."""
    names = [name for name, _ in model.named_buffers(remove_duplicate=False)]
    buffers = {plain(name): name for name in names} | {name: name for name in names}
    return {name: buffers[name] for name in inputs if name in buffers and after(name) in outputs}


def held_tensors(model: torch.nn.Module, names: Iterable[str]) -> dict[str, torch.Tensor]:
    """What buffers of a module hold, by their names: copies."""
    buffers = dict(model.named_buffers(remove_duplicate=False))
    return {name: buffers[name].detach().clone() for name in names}
