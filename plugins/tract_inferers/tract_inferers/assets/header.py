"""The header of a ``.crvo`` file: four letters, three zeros, and a number that says what kind of model follows."""

from __future__ import annotations

from enum import Enum
from typing import Final

from tract_core.errors import CorruptModel, InputError
from tract_core.lookalikes import recognise

MAGIC: Final = b"CRVO"
SIZE: Final = 8
"""Bytes of the header. What follows is the model, as a file of its own would hold it."""


class AssetKind(Enum):
    """The format of the model in an asset. ``AssetKind(1)`` and ``AssetKind("onnx")`` are `ONNX`."""

    ONNX = 1
    NNEF = 2

    def __str__(self) -> str:
        return self.format_name

    @property
    def format_name(self) -> str:
        """The name of the format among those that are installed: ``onnx``, ``nnef``."""
        return self.name.lower()

    @classmethod
    def _missing_(cls, value: object) -> AssetKind:
        found = next((kind for kind in cls if value == kind.format_name), None)
        if found is None:
            raise InputError(f"there is no kind of asset {value!r:.40}, wanted {_listed()}")
        return found


def header_of(kind: AssetKind) -> bytes:
    """The eight bytes in front of a model of that kind."""
    return MAGIC + bytes(3) + bytes([kind.value])


def kind_in(head: bytes, name: str = "") -> AssetKind:
    """What kind of model follows the header.

    ``head``: the beginning of the file, and its ``name``, for the message where it is no asset. Raises CorruptModel.
    """
    if len(head) < SIZE:
        raise CorruptModel(f"it has {len(head)} bytes, of the {SIZE} that an asset begins with", hint=_WHOLE)
    if not head.startswith(MAGIC):
        known = recognise(head, name)
        found = f", which is {known.what}" if known else ""
        hint = known.advice if known else "an asset is what 'tract inferers package' writes"
        raise CorruptModel(f"it begins with {head[:4]!r}{found}, wanted {MAGIC!r} as assets do", hint=hint)
    if any(head[4:7]):
        raise CorruptModel(f"its bytes 4 to 6 are {head[4:7]!r}, wanted zeros: it is of a newer kind, or damaged")
    try:
        return AssetKind(head[7])
    except InputError:
        raise CorruptModel(f"its byte 7, the kind of model, is {head[7]}, wanted {_listed()}") from None


_WHOLE: Final = "it was cut off: export or download it again"


def _listed() -> str:
    return " or ".join(f"{kind.value} ({kind})" for kind in AssetKind)
