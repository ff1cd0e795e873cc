"""Vectors whose length the processor knows, which instructions of SVE take: LLVM has types of their own for them.

Kernels know how long registers are, so they have vectors of so many lanes as for any other instruction set, and LLVM is
told the length. Where an intrinsic is called, its arguments become such vectors, and its result becomes one of ours; no
instruction does that. Imported where something is written, as it loads llvmlite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tract_llvm.llvm import ir

if TYPE_CHECKING:
    from tract_llvm.language.values import Emitter


class Scalable(ir.VectorType):
    """A vector that has so many lanes in every 128 bits of a register."""

    def _to_string(self) -> str:
        return f"<vscale x {self.count} x {self.element}>"


class _Anything(ir.Constant):
    """A vector of no matter which lanes."""

    def _get_reference(self) -> str:
        return "poison"


def of_length(function: Any, vscale: int) -> None:
    """Say of a function that registers have so many times 128 bits where it runs."""
    # The class of attributes takes nothing that has a number.
    attributes: set[str] = function.attributes
    set[str].add(attributes, f"vscale_range({vscale},{vscale})")


def called(k: Emitter, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    """What an intrinsic gives that adds to 32 bits each, as a vector of a type; all vectors are whole registers."""
    if result.count != k.isa.lanes(32):  # LLVM would end the process
        raise TypeError(f"{name} adds to whole registers, not to {result}")
    wide = [_scalable(k, one.type) for one in arguments]
    passed = [_inserted(k, kind, one) for kind, one in zip(wide, arguments, strict=True)]
    kind = _scalable(k, result)
    found = k.builder.call(k.declared(f"llvm.{name}", kind, wide), passed)
    extract = f"llvm.vector.extract.v{result.count}{result.element.intrinsic_name}.{_name(kind)}"
    return k.builder.call(k.declared(extract, result, [kind, _PLACE]), [found, ir.Constant(_PLACE, 0)])


_PLACE = ir.IntType(64)


def _inserted(k: Emitter, kind: Scalable, vector: Any) -> Any:
    name = f"llvm.vector.insert.{_name(kind)}.v{vector.type.count}{vector.type.element.intrinsic_name}"
    insert = k.declared(name, kind, [kind, vector.type, _PLACE])
    return k.builder.call(insert, [_Anything(kind, None), vector, ir.Constant(_PLACE, 0)])


def _scalable(k: Emitter, vector: Any) -> Scalable:
    return Scalable(vector.element, vector.count // k.isa.vscale)


def _name(kind: Scalable) -> str:
    return f"nxv{kind.count}{kind.element.intrinsic_name}"
