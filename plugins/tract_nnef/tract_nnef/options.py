"""How an archive is written, as the flags of the command and the methods of `Nnef` say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from tract_core.frozen import frozen
from tract_nnef.flags import REGISTRIES
from tract_nnef.registries import CORE, PY

USUAL: Final = frozenset({CORE, PY})
"""The registries whose operators archives may use unless somebody says otherwise."""


@frozen
class Writing:
    """How an archive is written.

    ``registries``: those whose operators it may use, beside the standard's. ``extended``: whether names that are no
    identifiers are written as they are, as ``i"name"``; else their other characters become ``_``. ``extern_all``:
    whether every constant is a tensor in a file of its own; else small ones are in the text. ``output_name``: what the
    output is called in the archive. ``pack_submodels``: whether submodels are archives in the archive, not folders.
    ``held``: names of constants that are tensors in files of their own, however small. ``level``: how hard gzip tries,
    1 to 9; without it, it leaves weights as they are. ``compiled``: what machine code of the model is for that lies in
    the archive too, as ``native``, or several targets with commas between them; ``None`` for none.
    """

    registries: frozenset[str] = USUAL
    extended: bool = False
    extern_all: bool = False
    output_name: str | None = None
    pack_submodels: bool = False
    held: frozenset[str] = frozenset()
    level: int | None = None
    compiled: str | None = None


def chosen(flags: Mapping[str, Any], usual: Collection[str] = USUAL) -> frozenset[str]:
    """The registries that flags allow: ``tract_onnx`` adds that one, ``opl`` all those of the tract engines.

    ``registry`` adds the one that it names; ``no_tract_core`` leaves the standard, and what is added; ``no_tract_py``
    leaves what the tract engines read.
    """
    added = [*REGISTRIES] if flags.get("opl") else [name for name in REGISTRIES if flags.get(name)]
    if flags.get("registry"):
        added.append(flags["registry"])
    left_out = USUAL if flags.get("no_tract_core") else {PY} if flags.get("no_tract_py") else ()
    return frozenset({*usual, *added}).difference(left_out)
