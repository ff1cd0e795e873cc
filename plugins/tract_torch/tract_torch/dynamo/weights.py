"""Whether weights are still what they were when a model was made with them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

_WORD: Final = 4
"""Bytes that are looked at in one place."""


class Weights:
    """Weights among the arguments of a graph, by their places, as they are now.

    PyTorch counts how often each tensor was written to, but for what is written through ``tensor.data``: so two places
    of each are looked at as well, in its middle and at its end.
    """

    def __init__(self, held: Mapping[int, torch.Tensor]) -> None:
        self.places = tuple(held)
        self._kept = [one.detach() for one in held.values()]  # so that their memory is nobody else's
        self._memory = [one.data_ptr() for one in self._kept]
        self._versions = [one._version for one in self._kept]
        self._words = [word for one in self._kept for word in _words(one)]
        self._held = [word.value for word in self._words]

    def are_in(self, args: Sequence[Any]) -> bool:
        """Whether these arguments have the same weights, and nobody wrote to them."""
        given = [args[place] for place in self.places]
        return (
            [one.data_ptr() for one in given] == self._memory
            and [one._version for one in given] == self._versions
            and [word.value for word in self._words] == self._held
        )


def bound(args: Sequence[Any], places: Sequence[int]) -> dict[int, torch.Tensor]:
    """Those of the arguments in these places whose changes PyTorch counts: not of those made in inference mode."""
    return {place: args[place] for place in places if not args[place].is_inference()}


def _words(tensor: torch.Tensor) -> list[ctypes.c_uint32]:
    """The memory of two places in a tensor; nothing for one that is small, or not contiguous."""
    size = tensor.numel() * tensor.element_size()
    if size < _WORD or not tensor.is_contiguous():
        return []
    places = {size // 2 // _WORD * _WORD, (size - _WORD) // _WORD * _WORD}
    return [
        ctypes.c_uint32.from_address(tensor.data_ptr() + place) for place in sorted(places) if place + _WORD <= size
    ]
