"""Functions that do what the lanes of a warp, or of four warps, wait to do together."""

from __future__ import annotations

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


_SLOTS: Final = f"""define internal i32 @slot(i64 %first, i64 %lane, i64 %number) alwaysinline {{
  %a = mul i64 %lane, {THREAD.bytes}
  %b = add i64 %first, %a
  %c = mul i64 %number, 4
  %d = add i64 %b, %c
  %e = add i64 %d, {THREAD.offset("extra")}
  %p = inttoptr i64 %e to ptr
  %v = load i32, ptr %p
  ret i32 %v
}}
define internal void @set_slot(i64 %first, i64 %lane, i64 %number, i32 %v) alwaysinline {{
  %a = mul i64 %lane, {THREAD.bytes}
  %b = add i64 %first, %a
  %c = mul i64 %number, 4
  %d = add i64 %b, %c
  %e = add i64 %d, {THREAD.offset("extra")}
  %p = inttoptr i64 %e to ptr
  store i32 %v, ptr %p
  ret void
}}
"""


def slots(w: Writer) -> None:
    """The functions that read and set slots of any lane."""
    w.functions.setdefault("slots", _SLOTS)


def together(w: Writer, name: str, what: Together) -> str:
    """The name of a function that does something for every lane."""
    slots(w)
    loops = _each("gather", what.gathered, "does_all") if what.gathered else "  br label %does_all\n"
    text = f"""define internal void @{name}(i64 %first, i64 %mask) {{
entry:
  %sum = alloca i32
  store i32 {what.start}, ptr %sum
{loops}does_all:
{_loop(what.body)}"""
    w.functions.setdefault(name, text)
    return name


def _each(label: str, body: str, behind: str) -> str:
    return f"""  br label %{label}
{label}:
  %{label}.i = phi i64 [0, %entry], [%{label}.next, %{label}.on]
  %{label}.b0 = lshr i64 %mask, %{label}.i
  %{label}.b = trunc i64 %{label}.b0 to i1
  br i1 %{label}.b, label %{label}.does, label %{label}.on
{label}.does:
{body.replace("%i,", f"%{label}.i,").replace("i64 %i to", f"i64 %{label}.i to")}
  br label %{label}.on
{label}.on:
  %{label}.next = add i64 %{label}.i, 1
  %{label}.more = icmp ult i64 %{label}.next, 32
  br i1 %{label}.more, label %{label}, label %{behind}
"""


def _loop(body: str) -> str:
    """For every lane of the mask."""
    names = body.replace("%before", "%before2").replace("%after", "%after2").replace("%moved", "%moved2")
    return f"""  br label %lanes
lanes:
  %i = phi i64 [0, %does_all], [%i.next, %on]
  %i.b0 = lshr i64 %mask, %i
  %i.b = trunc i64 %i.b0 to i1
  br i1 %i.b, label %does, label %on
does:
{names}
  br label %on
on:
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, 32
  br i1 %i.more, label %lanes, label %end
end:
  ret void
}}
"""
