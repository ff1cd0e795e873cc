"""A kernel of PTX as a module of LLVM: one thread is one coroutine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_llvm.llvm import binding

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.errors import UnknownPtx
from tract_cuda.testing.emulator.helpers import HELPERS
from tract_cuda.testing.emulator.instructions import table
from tract_cuda.testing.emulator.machine.layout import DONE, SHARED_BASE, THREAD
from tract_cuda.testing.emulator.parse import Entry, Label, Module, Statement, Variable
from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Writer

_ENDS: Final = ("ret", "exit", "trap")


@frozen
class DeclaredMemory:
    """Where what a kernel declares lies. ``symbols``: the space and the address or offset of each.

    ``static``: bytes of shared memory that it declares; ``dynamic``: where that of the launch begins; ``local``: bytes
    of memory of each thread's own.
    """

    symbols: Mapping[str, tuple[str, int]]
    static: int
    dynamic: int
    local: int


def laid_out(module: Module, entry: Entry, elsewhere: Mapping[str, int]) -> DeclaredMemory:
    """Where all that is declared lies. ``elsewhere``: the addresses of global variables."""
    symbols: dict[str, tuple[str, int]] = {name: ("global", address) for name, address in elsewhere.items()}
    ends = {"shared": 0, "local": 0}
    open_ones = list[Variable]()
    for one in (*module.variables, *entry.variables):
        if one.space not in ends:
            continue
        if one.bytes is None:
            open_ones.append(one)
            continue
        begin = -(-ends[one.space] // one.align) * one.align
        symbols[one.name] = (one.space, begin + (SHARED_BASE if one.space == "shared" else 0))
        ends[one.space] = begin + one.bytes
    align = max([one.align for one in open_ones], default=16)
    dynamic = -(-ends["shared"] // align) * align if open_ones else ends["shared"]
    symbols |= {one.name: ("shared", dynamic + SHARED_BASE) for one in open_ones}
    return DeclaredMemory(symbols, ends["shared"], dynamic, ends["local"])


def translated(entry: Entry, memory: DeclaredMemory) -> str:
    """The text of the module. Raises UnknownPtx."""
    w = Writer(entry.registers, memory.symbols, {one.name: one.offset for one in entry.parameters})
    _Code(w, entry).write()
    return _module(w, entry)


class _Code:
    """The statements of a kernel, one after the other."""

    def __init__(self, w: Writer, entry: Entry) -> None:
        self._w, self._entry = w, entry
        self._seen: set[str] = set()
        self._tables = {one.name: one.targets for one in entry.body if isinstance(one, Label) and one.targets}

    def write(self) -> None:
        """All of them."""
        for one in self._entry.body:
            if isinstance(one, Label):
                self._label(one)
            else:
                self._w.line = one.line
                self._guarded(one)
        self._w.do("br label %final")

    def _label(self, one: Label) -> None:
        if one.targets:
            return
        self._seen.add(one.name)
        self._w.do(f'br label %"{one.name}"')
        self._w.label(one.name)

    def _guarded(self, one: Statement) -> None:
        if not one.guard:
            self._statement(one)
            return
        w = self._w
        then, on = w.fresh("then"), w.fresh("on")
        w.do(f"br i1 {w.bits(one.guard, 'pred')}, label %{then}, label %{on}")
        w.label(then)
        self._statement(one)
        w.do(f"br label %{on}")
        w.label(on)

    def _statement(self, one: Statement) -> None:
        if one.opcode == "bra":
            self._jump(one.operands[0])
        elif one.opcode == "brx":
            self._jump_by_table(one)
        elif one.opcode in _ENDS:
            self._end(one.opcode)
        else:
            table.write(self._w, Operation(one))

    def _jump(self, target: str) -> None:
        if target in self._seen:
            self._w.spend()
        self._w.do(f'br label %"{target}"')
        self._w.label(self._w.fresh("dead"))

    def _jump_by_table(self, one: Statement) -> None:
        targets = self._tables.get(one.operands[1])
        if targets is None:
            raise UnknownPtx(f"there is no table of labels '{one.operands[1]}'", where=f"line {one.line}")
        if any(target in self._seen for target in targets):
            self._w.spend()
        place = self._w.bits(one.operands[0], "u32")
        cases = " ".join(f'i32 {number}, label %"{target}"' for number, target in enumerate(targets))
        self._w.do(f'switch i32 {place}, label %"{targets[-1]}" [{cases}]')
        self._w.label(self._w.fresh("dead"))

    def _end(self, opcode: str) -> None:
        w = self._w
        if opcode == "trap":
            w.machine_do("trap", str(w.line))
        w.do("br label %final")
        w.label(w.fresh("dead"))


def _module(w: Writer, entry: Entry) -> str:
    """The whole text, around what was written."""
    void = "void" if binding().llvm_version_info[0] >= 22 else "i1"
    ends = "call void" if void == "void" else "%ended = call i1"
    places = "\n".join(f'  %"{name}.r" = alloca i{BITS[kind]}' for name, kind in {**entry.registers, **w.more}.items())
    helpers = "\n".join(HELPERS[name].text(name) for name in w.used)
    declared = {*w.declarations, *(text for name in w.used for text in HELPERS[name].declares), *_COROUTINE}
    declared.add(f"declare {void} @llvm.coro.end(ptr, i1, token)")
    return _FRAME.format(
        declared="\n".join(sorted(declared)),
        helpers=helpers + "\n".join(w.functions.values()),
        places=places,
        code="\n".join(w.lines),
        wait=THREAD.offset("wait"),
        done=DONE,
        ends=ends,
    )


_COROUTINE: Final = (
    "declare token @llvm.coro.id(i32, ptr, ptr, ptr)",
    "declare i64 @llvm.coro.size.i64()",
    "declare ptr @llvm.coro.begin(token, ptr)",
    "declare i8 @llvm.coro.suspend(token, i1)",
    "declare ptr @llvm.coro.free(token, ptr)",
    "declare ptr @malloc(i64)",
    "declare void @free(ptr)",
)

_FRAME: Final = """{declared}
{helpers}
define i64 @kernel(i64 %thread) presplitcoroutine {{
entry:
{places}
  %T = inttoptr i64 %thread to ptr
  %id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %size = call i64 @llvm.coro.size.i64()
  %memory = call ptr @malloc(i64 %size)
  %frame = call ptr @llvm.coro.begin(token %id, ptr %memory)
{code}
final:
  %wait = getelementptr i8, ptr %T, i64 {wait}
  store i64 {done}, ptr %wait
  %last = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %last, label %suspend [i8 0, label %never i8 1, label %cleanup]
never:
  unreachable
cleanup:
  %freed = call ptr @llvm.coro.free(token %id, ptr %frame)
  call void @free(ptr %freed)
  br label %suspend
suspend:
  {ends} @llvm.coro.end(ptr %frame, i1 false, token none)
  %result = ptrtoint ptr %frame to i64
  ret i64 %result
}}
"""
