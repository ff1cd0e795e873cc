"""Functions that do what the lanes of a warp, or of four warps, wait to do together."""

from __future__ import annotations

import re
from typing import Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.machine.layout import THREAD
from tract_cuda.testing.emulator.writer import Writer


@frozen
class Together:
    """``body``: what is done for lane ``%i``; ``gathered``: what is done for each of them before, with ``%sum``.

    ``start``: of that sum. Both may use ``%first``, the first thread, and ``%mask``, the lanes that take part.
    """

    body: str
    gathered: str = ""
    start: int = 0


_SLOT: Final = f"""  %a = mul i64 %lane, {THREAD.bytes}
  %b = add i64 %first, %a
  %c = mul i64 %number, 4
  %d = add i64 %b, %c
  %e = add i64 %d, {THREAD.offset("extra")}
  %p = inttoptr i64 %e to ptr"""

_SLOTS: Final = f"""define internal i32 @slot(i64 %first, i64 %lane, i64 %number) alwaysinline {{
{_SLOT}
  %v = load i32, ptr %p
  ret i32 %v
}}
define internal void @set_slot(i64 %first, i64 %lane, i64 %number, i32 %v) alwaysinline {{
{_SLOT}
  store i32 %v, ptr %p
  ret void
}}
"""

_SHARED_NAMES: Final = ("first", "mask", "sum")
"""What both loops of a function have in common."""


def slots(w: Writer) -> None:
    """The functions that read and set slots of any lane."""
    w.functions.setdefault("slots", _SLOTS)


def together(w: Writer, name: str, what: Together) -> str:
    """The name of a function that does something for every lane."""
    slots(w)
    gathered = _for_lanes("gather", "%gather.i", "entry", _renamed(what.gathered)) if what.gathered else ""
    before = "gather.end" if gathered else "entry"
    text = f"""define internal void @{name}(i64 %first, i64 %mask) {{
entry:
  %sum = alloca i32
  store i32 {what.start}, ptr %sum
{gathered}{_for_lanes("lanes", "%i", before, what.body)}  ret void
}}
"""
    w.functions.setdefault(name, text)
    return name


def _renamed(body: str) -> str:
    """With names that the other loop of the function has not."""
    return re.sub(r"%(\w+)", lambda one: one[0] if one[1] in _SHARED_NAMES else f"%gather.{one[1]}", body)


def _for_lanes(label: str, i: str, before: str, body: str) -> str:
    """For every lane ``i`` of the mask, from the block ``before`` on; what follows is in a block of its own."""
    return f"""  br label %{label}
{label}:
  {i} = phi i64 [0, %{before}], [{i}.next, %{label}.on]
  {i}.b0 = lshr i64 %mask, {i}
  {i}.b = trunc i64 {i}.b0 to i1
  br i1 {i}.b, label %{label}.does, label %{label}.on
{label}.does:
{body}
  br label %{label}.on
{label}.on:
  {i}.next = add i64 {i}, 1
  {i}.more = icmp ult i64 {i}.next, 32
  br i1 {i}.more, label %{label}, label %{label}.end
{label}.end:
"""
