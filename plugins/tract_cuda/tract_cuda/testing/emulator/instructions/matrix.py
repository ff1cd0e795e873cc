"""Products of small matrices by the lanes of a warp, and how these load and store them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.instructions.collective import slots
from tract_cuda.testing.emulator.machine.access import READ, WRITE
from tract_cuda.testing.emulator.machine.layout import THREAD
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, listed

_ARGUMENTS: Final = "i64 %first, i64 %mask"
_ALL: Final = str(0xFFFFFFFF)
_ELEMENTS: Final = {
    "f16": 2,
    "bf16": 2,
    "tf32": 1,
    "e4m3": 4,
    "e5m2": 4,
    "s8": 4,
    "u8": 4,
    "s4": 8,
    "u4": 8,
}
"""How many elements of a type one register holds."""


@frozen
class Shape:
    """A product of so many rows, columns, and products to sum.

    ``m``, ``n``, ``k``: these three.
    """

    m: int
    n: int
    k: int


def shape_of(op: Operation) -> Shape:
    """What the instruction says."""
    for word in op.words:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word)
        if found:
            return Shape(*map(int, found.groups()))
    raise op.unknown("it has no shape")


def slot(w: Writer, lane: str, number: int) -> str:
    """The 32 bits of a slot of a lane."""
    slots(w)
    return w.ir(f"call i32 @slot(i64 %first, i64 {lane}, i64 {number})")


def set_slot(w: Writer, lane: str, number: int, value: str) -> None:
    """Set a slot of a lane."""
    slots(w)
    w.do(f"call void @set_slot(i64 %first, i64 {lane}, i64 {number}, i32 {value})")


# ---- rows of 16 bytes


def _rows(w: Writer, count: int, kind: int) -> str:
    """The addresses on the host of the rows that lanes name: an array of them."""
    rows = w.place(f"[{8 * count} x i64]")
    with w.loop(8 * count) as lane:
        thread = w.two("add", 64, "%first", w.two("mul", 64, lane, str(THREAD.bytes)))
        record = w.ir(f"inttoptr i64 {thread} to ptr")
        given = [
            w.ir(f"load i64, ptr {w.element(record, 'i8', str(THREAD.offset(name)))}") for name in ("address", "line")
        ]
        w.declare("tract.access_shared", "i64", ["i64"] * 5)
        found = w.ir(f"call i64 @tract.access_shared(i64 {thread}, i64 {given[0]}, i64 16, i64 {kind}, i64 {given[1]})")
        w.do(f"store i64 {found}, ptr {w.element(rows, 'i64', lane)}")
    return rows


def _at(w: Writer, rows: str, row: str, byte: str) -> str:
    """A place in a row."""
    base = w.ir(f"load i64, ptr {w.element(rows, 'i64', row)}")
    return w.ir(f"inttoptr i64 {w.two('add', 64, base, byte)} to ptr")


def _spot(w: Writer, lane: str) -> tuple[str, str]:
    """A lane's row, and its place among the four of it."""
    return w.two("lshr", 64, lane, "2"), w.two("and", 64, lane, "3")


def _load(w: Writer, count: int, *, turned: bool) -> None:
    rows = _rows(w, count, READ)
    with w.loop(32) as lane:
        group, place = _spot(w, lane)
        for number in range(count):
            if turned:
                set_slot(w, lane, number, _column(w, rows, number, group, place))
                continue
            here = _at(w, rows, w.two("add", 64, group, str(8 * number)), w.two("shl", 64, place, "2"))
            set_slot(w, lane, number, w.ir(f"load i32, ptr {here}, align 1"))


def _column(w: Writer, rows: str, number: int, group: str, place: str) -> str:
    """Two elements of one column, as 32 bits."""
    found = "0"
    for half in range(2):
        row = w.two("add", 64, w.two("shl", 64, place, "1"), str(8 * number + half))
        here = _at(w, rows, row, w.two("shl", 64, group, "1"))
        value = w.ir(f"zext i16 {w.ir(f'load i16, ptr {here}, align 1')} to i32")
        found = w.two("or", 32, found, w.two("shl", 32, value, str(16 * half)))
    return found


def _store(w: Writer, count: int, *, turned: bool) -> None:
    rows = _rows(w, count, WRITE)
    with w.loop(32) as lane:
        group, place = _spot(w, lane)
        for number in range(count):
            value = slot(w, lane, number)
            for half in range(2):
                part = w.ir(f"trunc i32 {w.two('lshr', 32, value, str(16 * half))} to i16")
                along = w.two("add", 64, w.two("shl", 64, place, "1"), str(half))
                row, column = (along, group) if turned else (group, along)
                here = _at(w, rows, w.two("add", 64, row, str(8 * number)), w.two("shl", 64, column, "1"))
                w.do(f"store i16 {part}, ptr {here}, align 1")


def _count(op: Operation) -> int:
    return int(op.one_of(["x1", "x2", "x4"])[1:])


def _checked(op: Operation) -> None:
    if not op.has("m8n8") or op.kind != "b16":
        raise op.unknown("it moves matrices of 8 by 8 elements of 16 bits")


def _ldmatrix(w: Writer, op: Operation) -> None:
    _checked(op)
    count, turned = _count(op), op.has("trans")
    w.set_field("address", w.address(op.operands[1]))
    name = f"ldmatrix_{count}_{turned}"
    w.function(name, _ARGUMENTS, lambda inner: _load(inner, count, turned=turned))
    w.wait_together(name, _ALL)
    for number, target in enumerate(listed(op.operands[0])):
        w.put(target, w.slot(number), "b32")


def _stmatrix(w: Writer, op: Operation) -> None:
    _checked(op)
    count, turned = _count(op), op.has("trans")
    w.set_field("address", w.address(op.operands[0]))
    for number, source in enumerate(listed(op.operands[1])):
        w.set_slot(number, w.bits(source, "b32"))
    name = f"stmatrix_{count}_{turned}"
    w.function(name, _ARGUMENTS, lambda inner: _store(inner, count, turned=turned))
    w.wait_together(name, _ALL)


# ---- products


@frozen
class WarpProduct:
    """A product of a warp. ``left``, ``right``: the types of the factors; ``sums``, ``result``: f32, f16 or s32.

    ``finite``: whether sums stop at the ends of their type.
    """

    shape: Shape
    left: str
    right: str
    sums: str
    result: str

    @property
    def kind(self) -> str:
        """The type of LLVM that it is summed in."""
        return "i32" if self.result == "s32" else "double"

    @property
    def registers(self) -> tuple[int, int, int, int]:
        """Of the left and right factor, of the sums and of the result."""
        m, n, k = self.shape.m, self.shape.n, self.shape.k
        each = _ELEMENTS[self.left] * 32
        sums = [m * n // 32 // (2 if one == "f16" else 1) for one in (self.sums, self.result)]
        return m * k // each, k * n // (_ELEMENTS[self.right] * 32), sums[0], sums[1]


def element_of(w: Writer, word: str, place: int, kind: str, wide: str) -> str:
    """An element of a register as a number that is multiplied."""
    bits = 32 // _ELEMENTS[kind]
    if kind == "tf32":
        cut = w.two("and", 32, word, str(-(1 << 13)))
        return w.ir(f"fpext float {w.ir(f'bitcast i32 {cut} to float')} to double")
    part = w.ir(f"trunc i32 {w.two('lshr', 32, word, str(bits * place))} to i{bits}")
    return number_of(w, part, kind, wide)


def number_of(w: Writer, part: str, kind: str, wide: str) -> str:
    """The bits of an element as a number that is multiplied."""
    if wide == "i32":
        bits = 32 // _ELEMENTS[kind]
        return w.ir(f"{'sext' if kind[0] == 's' else 'zext'} i{bits} {part} to i32")
    if kind == "f16":
        return _half(w, part)
    if kind == "bf16":
        moved = w.two("shl", 32, w.ir(f"zext i16 {part} to i32"), "16")
        return w.ir(f"fpext float {w.ir(f'bitcast i32 {moved} to float')} to double")
    return _eight(w, part, kind)


def _half(w: Writer, part: str) -> str:
    number = w.ir(f"bitcast i16 {part} to half")
    return w.ir(f"fpext float {w.ir(f'fpext half {number} to float')} to double")


def _eight(w: Writer, part: str, kind: str) -> str:
    """A float of 8 bits: e5m2 is the upper half of a half; e4m3 has another bias, and one bit less."""
    wide = w.ir(f"zext i8 {part} to i16")
    if kind == "e5m2":
        return _half(w, w.two("shl", 16, wide, "8"))
    size = w.two("and", 16, wide, "127")
    sign = w.two("shl", 16, w.two("and", 16, wide, "128"), "8")
    number = w.ir(f"fmul double {_half(w, w.two('or', 16, sign, w.two('shl', 16, size, '7')))}, 256.0")
    nothing = w.ir(f"icmp eq i16 {size}, 127")
    return w.ir(f"select i1 {nothing}, double 0x7FF8000000000000, double {number}")


def _multiplied(w: Writer, what: WarpProduct) -> None:
    """The body of the function that does it for a warp."""
    m, n, k = what.shape.m, what.shape.n, what.shape.k
    left, right, sums = (w.place(f"[{size} x {what.kind}]") for size in (m * k, k * n, m * n))
    counts = what.registers
    with w.loop(32) as lane:
        where = _spot(w, lane)
        for number in range(counts[0]):
            _keep_left(w, left, what, (slot(w, lane, number), number), where)
        for number in range(counts[1]):
            _keep_right(w, right, what, (slot(w, lane, counts[0] + number), number), where)
        for number in range(counts[2]):
            _keep_sums(w, sums, what, (slot(w, lane, counts[0] + counts[1] + number), number), where)
    multiply(w, what.kind, (left, right, sums), what.shape)
    with w.loop(32) as lane:
        where = _spot(w, lane)
        for number in range(counts[3]):
            set_slot(w, lane, number, _result(w, sums, what, number, where))


def _keep_left(w: Writer, left: str, what: WarpProduct, held: tuple[str, int], where: tuple[str, str]) -> None:
    """Keep the elements of a register of the left factor. ``held``: its bits, and which one it is of a lane's."""
    (word, number), (group, place), each = held, where, _ELEMENTS[what.left]
    halves = 2 if what.shape.m == 16 else 1  # of which each register has rows of one
    row = w.two("add", 64, group, str(8 * (number % halves)))
    for one in range(each):
        column = _along(w, place, each, one, number // halves)
        _Array(left, what.kind, what.shape.k).keep(w, row, column, element_of(w, word, one, what.left, what.kind))


def _keep_right(w: Writer, right: str, what: WarpProduct, held: tuple[str, int], where: tuple[str, str]) -> None:
    """The same of the right factor."""
    (word, number), (group, place), each = held, where, _ELEMENTS[what.right]
    for one in range(each):
        row = _along(w, place, each, one, number)
        _Array(right, what.kind, what.shape.n).keep(w, row, group, element_of(w, word, one, what.right, what.kind))


def _along(w: Writer, place: str, each: int, one: int, block: int) -> str:
    """The position of an element along the summed axis."""
    return w.two("add", 64, w.two("mul", 64, place, str(each)), str(one + 4 * each * block))


@frozen
class _Array:
    """A matrix in memory of the function: elements of a type of LLVM, and how many a row has."""

    base: str
    kind: str
    width: int

    def keep(self, w: Writer, row: str, column: str, value: str) -> None:
        """Set an element."""
        spot = w.two("add", 64, w.two("mul", 64, row, self.width), column)
        w.do(f"store {self.kind} {value}, ptr {w.element(self.base, self.kind, spot)}")


def _sum_spot(w: Writer, n: int, number: int, where: tuple[str, str]) -> str:
    """The place of an element of the result: ``number`` counts those of a lane."""
    row = w.two("add", 64, where[0], str(8 * (number // 2)))
    column = w.two("add", 64, w.two("shl", 64, where[1], "1"), str(number % 2))
    return w.two("add", 64, w.two("mul", 64, row, str(n)), column)


def _keep_sums(w: Writer, sums: str, what: WarpProduct, held: tuple[str, int], where: tuple[str, str]) -> None:
    """The same of what is added to."""
    word, number = held
    if what.sums == "f16":
        for half in range(2):
            value = element_of(w, word, half, "f16", "double")
            spot = _sum_spot(w, what.shape.n, 2 * number + half, where)
            w.do(f"store double {value}, ptr {w.element(sums, 'double', spot)}")
        return
    value = word if what.kind == "i32" else wide_float(w, word)
    place = w.element(sums, what.kind, _sum_spot(w, what.shape.n, number, where))
    w.do(f"store {what.kind} {value}, ptr {place}")


def wide_float(w: Writer, word: str) -> str:
    """The float of 32 bits as a double."""
    return w.ir(f"fpext float {w.ir(f'bitcast i32 {word} to float')} to double")


def multiply(w: Writer, kind: str, arrays: tuple[str, str, str], shape: Shape) -> None:
    """sums[m, n] += left[m, k] * right[k, n], eight columns at once."""
    vector = f"<8 x {kind}>"
    left, right, sums = arrays
    add, times = ("add", "mul") if kind == "i32" else ("fadd", "fmul")
    with w.loop(shape.m) as row, w.loop(shape.n // 8) as block:
        column = w.two("shl", 64, block, "3")
        spot = w.element(sums, kind, w.two("add", 64, w.two("mul", 64, row, str(shape.n)), column))
        total = w.place(vector)
        w.do(f"store {vector} {w.ir(f'load {vector}, ptr {spot}, align 8')}, ptr {total}")
        with w.loop(shape.k) as depth:
            one = w.element(left, kind, w.two("add", 64, w.two("mul", 64, row, str(shape.k)), depth))
            single = w.ir(f"insertelement {vector} undef, {kind} {w.ir(f'load {kind}, ptr {one}')}, i32 0")
            spread = w.ir(f"shufflevector {vector} {single}, {vector} undef, <8 x i32> zeroinitializer")
            other = w.element(right, kind, w.two("add", 64, w.two("mul", 64, depth, str(shape.n)), column))
            factors = w.ir(f"load {vector}, ptr {other}, align 8")
            product = w.ir(f"{times} {vector} {spread}, {factors}")
            before = w.ir(f"load {vector}, ptr {total}")
            w.do(f"store {vector} {w.ir(f'{add} {vector} {before}, {product}')}, ptr {total}")
        w.do(f"store {vector} {w.ir(f'load {vector}, ptr {total}')}, ptr {spot}, align 8")


def _result(w: Writer, sums: str, what: WarpProduct, number: int, where: tuple[str, str]) -> str:
    """A register of the result."""
    if what.result != "f16":
        value = w.ir(f"load {what.kind}, ptr {w.element(sums, what.kind, _sum_spot(w, what.shape.n, number, where))}")
        return value if what.kind == "i32" else rounded_float(w, value)
    found = "0"
    for half in range(2):
        spot = _sum_spot(w, what.shape.n, 2 * number + half, where)
        value = w.ir(f"load double, ptr {w.element(sums, 'double', spot)}")
        found = w.two("or", 32, found, w.two("shl", 32, rounded_half(w, value), str(16 * half)))
    return found


def rounded_half(w: Writer, value: str) -> str:
    """A double as the 16 bits of a half, in an i32."""
    odd = w.helper("narrow_odd", f"double {value}")
    bits = w.ir(f"bitcast half {w.ir(f'fptrunc float {odd} to half')} to i16")
    return w.ir(f"zext i16 {bits} to i32")


def rounded_float(w: Writer, value: str) -> str:
    """A double as the 32 bits of a float: to the nearest or, by the seed, towards zero, as devices do."""
    nearest = w.ir(f"fptrunc double {value} to float")
    cut = w.helper("directed_rz_float", f"double {value}", "double 0.0")
    cuts = w.ir(f"trunc i64 {_seed(w)} to i1")
    return w.ir(f"bitcast float {w.ir(f'select i1 {cuts}, float {cut}, float {nearest}')} to i32")


def _seed(w: Writer) -> str:
    """Of the launch to which the first thread belongs."""
    if "seed" not in w.more:
        w.do("%T = inttoptr i64 %first to ptr")
        w.more["seed"] = "pred"
    return w.seed()


def _product(op: Operation) -> WarpProduct:
    """What the instruction says."""
    if op.has("sp", "xor", "popc", "satfinite") or any(one not in (*_ELEMENTS, "f32", "s32") for one in op.kinds):
        raise op.unknown("such products are not known")
    result, left, right, sums = op.kinds
    shape = shape_of(op)
    if shape.m not in (8, 16) or shape.n != 8 or (shape.m == 8 and left in ("f16", "bf16", "tf32")):
        raise op.unknown("products of such a shape are not known")
    if not op.has("row") or not op.has("col"):
        raise op.unknown("the left factor is by rows, and the right one by columns")
    return WarpProduct(shape, left, right, sums, result)


def _mma(w: Writer, op: Operation) -> None:
    what = _product(op)
    given = [one for operand in op.operands[1:4] for one in listed(operand)]
    if len(given) != sum(what.registers[:3]):
        raise op.unknown(f"it has {len(given)} registers instead of {sum(what.registers[:3])}")
    for number, source in enumerate(given):
        w.set_slot(number, w.bits(source, "b32"))
    name = f"mma_{what.shape.m}_{what.shape.n}_{what.shape.k}_{'_'.join(op.kinds)}"
    w.function(name, _ARGUMENTS, lambda inner: _multiplied(inner, what))
    w.wait_together(name, _ALL)
    for number, target in enumerate(listed(op.operands[0])):
        w.put(target, w.slot(number), "b32")


TABLE: Final[Mapping[str, Row]] = {
    "ldmatrix": Row(_ldmatrix, "sync aligned m8n8 x1 x2 x4 trans shared"),
    "stmatrix": Row(_stmatrix, "sync aligned m8n8 x1 x2 x4 trans shared"),
    "mma": Row(
        _mma,
        "sync aligned row col satfinite " + " ".join(f"m{m}n8k{k}" for m in (8, 16) for k in (4, 8, 16, 32, 64)),
    ),
}
