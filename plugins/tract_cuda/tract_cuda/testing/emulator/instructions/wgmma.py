"""Products by four warps together, of matrices in shared memory that descriptors describe.

What a device does while threads go on is done here when they ask for it; the factors must not change until it is waited
for, and that is not watched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.instructions.matrix import (
    Shape,
    element_of,
    multiply,
    number_of,
    rounded_float,
    rounded_half,
    set_slot,
    shape_of,
    slot,
    wide_float,
)
from tract_cuda.testing.emulator.machine.access import READ
from tract_cuda.testing.emulator.machine.layout import GROUP, THREAD
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, listed, number

_ROWS: Final = 64
_BITS: Final = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}


@frozen
class Factor:
    """One factor. ``kind``: of its elements; ``turned``: whether these lie along rows or columns that are not summed.

    ``descriptor``: the field of threads that has it; empty for registers. ``sign``: what it is multiplied by.
    """

    kind: str
    turned: bool
    descriptor: str
    sign: int


@frozen
class GroupProduct:
    """The product of four warps: [64, depth] times [depth, columns], added to sums in f32, f16 or s32.

    ``left``, ``right``: the factors; ``result``: the type of sums.
    """

    shape: Shape
    left: Factor
    right: Factor
    result: str

    @property
    def kind(self) -> str:
        """The type of LLVM that it is summed in."""
        return "i32" if self.result == "s32" else "double"

    @property
    def registers(self) -> int:
        """Of a thread's sums."""
        return self.shape.n // (4 if self.result == "f16" else 2)

    @property
    def name(self) -> str:
        """A word that tells it from others."""
        factors = "_".join(
            f"{one.kind}{int(one.turned)}{one.descriptor}{'n' if one.sign < 0 else ''}"
            for one in (self.left, self.right)
        )
        return f"wgmma_{self.shape.n}_{self.shape.k}_{factors}_{self.result}"


def _field(w: Writer, name: str, thread: str = "%first") -> str:
    place = w.two("add", 64, thread, THREAD.offset(name))
    return w.ir(f"load i64, ptr {w.ir(f'inttoptr i64 {place} to ptr')}")


@frozen
class Opened:
    """What a descriptor says: where the matrix begins, two distances in bytes, and the width of its pattern.

    ``start``, ``leading``, ``stride``: these, as values of LLVM.
    """

    start: str
    leading: str
    stride: str
    width: str


def _opened(w: Writer, name: str) -> Opened:
    held = _field(w, name)

    def part(shift: int) -> str:
        return w.two("shl", 64, w.two("and", 64, w.two("lshr", 64, held, shift), 0x3FFF), 4)

    mode = w.two("lshr", 64, held, 62)
    plain = w.ir(f"icmp eq i64 {mode}, 0")
    width = w.two("lshr", 64, "256", mode)  # 128, 64 and 32 bytes for 1, 2 and 3
    return Opened(part(0), part(16), part(32), w.ir(f"select i1 {plain}, i64 16, i64 {width}"))


def _place(w: Writer, one: Opened, factor: Factor, along: str, depth: str) -> str:
    """The address of an element: its position along what is not summed, and along what is."""
    size = _BITS[factor.kind] // 8
    if factor.turned:
        wide = w.two("udiv", 64, one.width, size)
        row, column = depth, w.two("mul", 64, w.two("urem", 64, along, wide), size)
        far = w.two("mul", 64, w.two("udiv", 64, along, wide), one.leading)
    else:
        bytes_in = w.two("mul", 64, depth, size)
        row, column = along, w.two("urem", 64, bytes_in, one.width)
        far = w.two("mul", 64, w.two("udiv", 64, bytes_in, one.width), one.leading)
    block = w.two("mul", 64, w.two("lshr", 64, row, 3), one.stride)
    line = w.two("mul", 64, w.two("and", 64, row, 7), one.width)
    found = one.start
    for part in (block, line, column, far):
        found = w.two("add", 64, found, part)
    return _swizzled(w, found, one.width)


def _swizzled(w: Writer, address: str, width: str) -> str:
    """Bits 4 to 6 are changed by bits 7 to 9: as many as the pattern is wide."""
    mask = w.two("sub", 64, w.two("lshr", 64, width, 4), 1)
    changed = w.two("and", 64, w.two("lshr", 64, address, 7), mask)
    return w.two("xor", 64, address, w.two("shl", 64, changed, 4))


def _read(w: Writer, what: GroupProduct, factor: Factor, array: str, count: int, *, left: bool) -> None:
    """All elements of a factor in shared memory."""
    one, depth, kind = _opened(w, factor.descriptor), what.shape.k, what.kind
    line, size = _field(w, "line"), _BITS[factor.kind]
    w.declare("tract.access_shared", "i64", ["i64"] * 5)
    with w.loop(count) as along, w.loop(depth) as summed:
        place = _place(w, one, factor, along, summed)
        host = w.ir(f"call i64 @tract.access_shared(i64 %first, i64 {place}, i64 {size // 8}, i64 {READ}, i64 {line})")
        bits = w.ir(f"load i{size}, ptr {w.ir(f'inttoptr i64 {host} to ptr')}, align 1")
        value = _signed(w, _number(w, bits, factor.kind, kind), kind, factor.sign)
        spot = (along, depth, summed) if left else (summed, what.shape.n, along)
        at = w.two("add", 64, w.two("mul", 64, spot[0], spot[1]), spot[2])
        w.do(f"store {kind} {value}, ptr {w.element(array, kind, at)}")


def _number(w: Writer, bits: str, kind: str, wide: str) -> str:
    return element_of(w, bits, 0, "tf32", wide) if kind == "tf32" else number_of(w, bits, kind, wide)


def _signed(w: Writer, value: str, kind: str, sign: int) -> str:
    return w.ir(f"fneg double {value}") if sign < 0 and kind == "double" else value


def _from_registers(w: Writer, what: GroupProduct, array: str, held: int) -> None:
    """The left factor: each warp has sixteen rows of it."""
    each, kind = 32 // _BITS[what.left.kind], what.kind
    with w.loop(128) as thread:
        row = _row(w, thread)
        place = w.two("and", 64, thread, 3)
        for register in range(4):
            word = slot(w, thread, held + register)
            down = w.two("add", 64, row, 8 * (register % 2))
            for one in range(each):
                column = w.two("add", 64, w.two("mul", 64, place, each), one + 4 * each * (register // 2))
                at = w.two("add", 64, w.two("mul", 64, down, what.shape.k), column)
                value = _signed(w, element_of(w, word, one, what.left.kind, kind), kind, what.left.sign)
                w.do(f"store {kind} {value}, ptr {w.element(array, kind, at)}")


def _row(w: Writer, thread: str) -> str:
    """The first row that a thread holds some of."""
    warp = w.two("shl", 64, w.two("lshr", 64, thread, 5), 4)
    return w.two("add", 64, warp, w.two("lshr", 64, w.two("and", 64, thread, 31), 2))


def _spot(w: Writer, what: GroupProduct, thread: str, number: int) -> str:
    """The place of an element of the sums: ``number`` counts those of a thread."""
    row = w.two("add", 64, _row(w, thread), 8 * (number // 2 % 2))
    column = w.two("add", 64, w.two("shl", 64, w.two("and", 64, thread, 3), 1), number // 4 * 8 + number % 2)
    return w.two("add", 64, w.two("mul", 64, row, what.shape.n), column)


def _sums(w: Writer, what: GroupProduct, array: str) -> None:
    """What is added to: the registers, or nothing."""
    kind = what.kind
    adds = w.ir(f"icmp ne i64 {_field(w, 'count')}, 0")
    zero = "0" if kind == "i32" else "0.0"
    with w.loop(128) as thread:
        for register in range(what.registers):
            word = slot(w, thread, register)
            for part, value in enumerate(_apart(w, what, word)):
                number = 2 * register + part if what.result == "f16" else register
                start = w.ir(f"select i1 {adds}, {kind} {value}, {kind} {zero}")
                w.do(f"store {kind} {start}, ptr {w.element(array, kind, _spot(w, what, thread, number))}")


def _apart(w: Writer, what: GroupProduct, word: str) -> list[str]:
    """The numbers of one register."""
    if what.result == "f16":
        return [element_of(w, word, half, "f16", "double") for half in range(2)]
    return [word if what.result == "s32" else wide_float(w, word)]


def _results(w: Writer, what: GroupProduct, array: str) -> None:
    kind = what.kind
    with w.loop(128) as thread:
        for register in range(what.registers):
            parts = 2 if what.result == "f16" else 1
            places = [_spot(w, what, thread, parts * register + part) for part in range(parts)]
            values = [w.ir(f"load {kind}, ptr {w.element(array, kind, place)}") for place in places]
            if what.result == "f16":
                low, high = (rounded_half(w, one) for one in values)
                found = w.two("or", 32, low, w.two("shl", 32, high, 16))
            else:
                found = values[0] if kind == "i32" else rounded_float(w, values[0])
            set_slot(w, thread, register, found)


def _multiplied(w: Writer, what: GroupProduct) -> None:
    shape, kind = what.shape, what.kind
    sizes = _ROWS * shape.k, shape.k * shape.n, _ROWS * shape.n
    left, right, sums = (w.place(f"[{size} x {kind}]") for size in sizes)
    if what.left.descriptor:
        _read(w, what, what.left, left, _ROWS, left=True)
    else:
        _from_registers(w, what, left, what.registers)
    _read(w, what, what.right, right, shape.n, left=False)
    _sums(w, what, sums)
    multiply(w, kind, (left, right, sums), shape)
    _results(w, what, sums)


def _wgmma(w: Writer, op: Operation) -> None:
    if not op.has("mma_async"):
        return  # what orders, commits and waits: all is done at once here
    if op.has("sp") or op.has("satfinite"):
        raise op.unknown("such products are not known")
    what = _product(op)
    sums = listed(op.operands[0])
    if len(sums) != what.registers:
        raise op.unknown(f"it has {len(sums)} registers instead of {what.registers}")
    _give(w, op, what, sums)
    w.function(what.name, "i64 %first, i64 %mask", lambda inner: _multiplied(inner, what))
    w.wait_together(what.name, "0", GROUP)
    for place, target in enumerate(sums):
        w.put(target, w.slot(place), "b32")


def _give(w: Writer, op: Operation, what: GroupProduct, sums: Sequence[str]) -> None:
    """Have registers in slots, descriptors in fields, and in one of these whether sums are added to."""
    held = [*sums, *([] if what.left.descriptor else listed(op.operands[1]))]
    for place, source in enumerate(held):
        w.set_slot(place, w.bits(source, "b32"))
    if what.left.descriptor:
        w.set_field(what.left.descriptor, w.bits(op.operands[1], "b64"))
    w.set_field(what.right.descriptor, w.bits(op.operands[2], "b64"))
    w.set_field("count", w.sized(w.bits(op.operands[3], "pred"), 1, 64))


def _product(op: Operation) -> GroupProduct:
    """What the instruction says; signs and turns are its last operands."""
    result, left, right = op.kinds[:3]
    if left not in _BITS or result not in ("f32", "f16", "s32"):
        raise op.unknown("such products are not known")
    held = op.operands[1].startswith("{")
    rest = [number(one, "b32") or 0 for one in op.operands[4:]]
    signs = [-1 if one == 0xFFFFFFFF else 1 for one in rest[:2]] or [1, 1]
    turns = [bool(one) for one in rest[2:]]
    turns = [False, *turns] if held else turns
    turns += [False] * (2 - len(turns))
    return GroupProduct(
        shape_of(op),
        Factor(left, turns[0], "" if held else "address", signs[0]),
        Factor(right, turns[1], "second", signs[1]),
        result,
    )


_SHAPES: Final = " ".join(f"m64n{8 * n}k{k}" for n in range(1, 33) for k in (8, 16, 32))

TABLE: Final[Mapping[str, Row]] = {
    "wgmma": Row(_wgmma, f"mma_async fence commit_group wait_group sync aligned {_SHAPES}"),
}
