"""What the fields of operators may hold, by their type hints: each kind is written, and read back the same."""

from __future__ import annotations

import math
import struct
from enum import Enum
from typing import Any, Literal, Optional

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tract_nnef.archive.tensors import read_tensor, tensor_file
from tract_nnef.documents.operators import Operators
from tract_nnef.documents.reader import Reader
from tract_nnef.documents.writer import Writer
from tract_nnef.reading.expressions import Scope
from tract_nnef.registry import PY
from tract_nnef.schema.hints import kind_of
from tract_nnef.syntax.parser import parse_statements
from tract_nnef.syntax.printer import print_expression

from tract_core.data import Constant, DatumType, DType, QuantizedType, SequenceType, SymbolicArray
from tract_core.data.containers import ItemFact, MapType, OptionalType
from tract_core.dims import Dim, SymbolScope, broadcast, comparison, dim_max, dim_min, symbol
from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.same import content
from tract_core.model.typed import TypedModel
from tract_core.ops.pool_spec import Explicit, Padding, Valid


class Colour(Enum):
    RED = 3
    GREEN = "red"


@frozen
class Point:
    x: int
    y: float = 0.0


@frozen
class Place:
    x: int
    of: tuple[Point, ...] = ()


S, T = symbol("S"), symbol("T")
NAN = math.nan
F32 = np.float32

VALUES: list[tuple[Any, Any]] = [
    (int, 0),
    (int, -(1 << 63)),
    (int, (1 << 64) - 1),
    (bool, True),
    (bool, False),
    *((float, value) for value in (0.0, -0.0, 1e-320, 1.7976931348623157e308, 0.1, math.inf, -math.inf, NAN, 3)),
    *((str, value) for value in ("", 'a "quoted" \\ text', "two\nlines;", "naïve ☃", "nan", "\x00")),
    *((Dim, value) for value in (7, S, 2 * S * T + 1, (S + 3) // 4, -S, dim_min(S, T + 4), dim_max(S, 1) // 2)),
    *((Dim, value) for value in (broadcast(S, T), comparison(S, ">=", T), 3 * comparison(S, "==", 4) + 1)),
    (Dim, symbol("batch size") + symbol("a/b") * symbol("f;g") + symbol("min") + symbol("graph")),
    (tuple[int, ...], ()),
    (tuple[int, ...], (1, -2)),
    (tuple[()], ()),
    (tuple[int], (1,)),
    (tuple[int, str], (1, "a")),
    (tuple[tuple[Dim, ...], ...], ((), (1, S), (S + 1,))),
    (tuple[Dim | None, ...], (None, 1, S)),
    (tuple[tuple[Dim, Dim], ...], ((1, 2), (S, T))),
    (frozenset[str], frozenset({"b", "a"})),
    (Optional[int], None),  # noqa: UP045 - others write it so
    (int | None, 0),
    (tuple[int, ...] | None, ()),
    (tuple[int, ...] | None, None),
    (bool | int, True),
    (bool | int, 1),
    (int | float, 1),
    (int | float, 1.0),
    (str | Colour, "RED"),
    (str | Colour, Colour.RED),
    (str | float, NAN),
    (str | float, "nan"),
    (Literal["none", "add"], "add"),
    (Literal[1, True, "1"], True),
    (Literal[1, True, "1"], 1),
    *((DatumType, kind) for kind in DatumType),
    *((DType, kind) for kind in (DatumType.F32, QuantizedType(DatumType.I32, -7, 1 / 3))),
    (DType, SequenceType(ItemFact(DatumType.I64, (2, None, S)), (ItemFact(DatumType.I64, (2, 1, S)),))),
    (DType, OptionalType(ItemFact(SequenceType(ItemFact(DatumType.STRING, None))), True)),
    (DType, MapType(DatumType.STRING, ItemFact(QuantizedType(DatumType.U8, 0, float(F32(0.1)))))),
    (DType | None, None),
    (Colour, Colour.GREEN),
    (Point, Point(1)),
    (Point, Point(1, -0.0)),
    (Point | Place, Point(1)),
    (Point | Place, Place(1, (Point(2), Point(3, NAN)))),
    (Place | None, None),
    (Point | tuple[str, int], ("Point", 1)),
    (Point | Place | tuple[str, int], ("Point", 1)),
    (Padding, Explicit((1,), (2,))),
    (Padding, Valid()),
    (AxesMapping, AxesMapping.parse("mk,kn->mn")),
    (ShapeFact, ShapeFact((1, S))),
    (TypedFact, TypedFact.of(DatumType.F32, (S, 2))),
    (TypedFact, TypedFact.of_value(Constant(np.array([3, 4])))),
    (Constant, Constant(np.array(-0.0, F32))),
    (Constant, Constant(np.array([[1, NAN], [math.inf, 0.1]], F32))),
    (Constant, Constant(np.array([1 / 3, 1e-45, 3.4028235e38], F32))),
    (Constant, Constant(np.zeros((0, 3), F32))),
    (Constant, Constant(np.zeros((2,) * 9, F32))),
    (Constant, Constant(np.zeros((1,) * 12, np.int8))),
    (Constant, Constant(np.array(["a", "", "☃\n"], object))),
    *((Constant, Constant(np.array([0, 1, 1], kind))) for kind in (np.bool_, np.int8, np.uint64, np.float16)),
    *((Constant, Constant(np.array([0, 1, 1], kind))) for kind in (np.float64, np.complex64, np.complex128)),
    *((Constant, Constant(np.array([0, 1], kind))) for kind in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint2)),
    *((Constant, Constant(np.array([1, 2], kind))) for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn)),
    (Constant | None, None),
    (Constant | SymbolicArray, Constant(np.array([1, 2]))),
    (Constant | SymbolicArray, SymbolicArray.of((S, 1))),
    (Constant | SymbolicArray, SymbolicArray(np.array([[S], [dim_min(S, T)]], object))),
    (SymbolicArray, SymbolicArray(np.array(S, object))),
    (SymbolicArray, SymbolicArray.of((1, 2))),
]


def through(hint: Any, value: Any) -> Any:
    """A value, as a document and its tensors have it and as it is read from there."""
    model = TypedModel(SymbolScope(["S", "T", "batch size", "a/b", "f;g", "min", "graph"]))
    writer = Writer(model, {PY})
    said = print_expression(kind_of(hint).write(value, writer))
    (statement,) = parse_statements(f"x = {said};")
    operators = Operators(model.registry)
    operators.use(PY)
    reader = Reader(model, operators, Files(writer))
    return kind_of(hint).read(Scope(reader, {}).evaluate(statement.value), reader)


class Files:
    """The tensors that a document holds, through the bytes of their files."""

    def __init__(self, writer: Writer) -> None:
        pieces = {label: tensor_file(value.array) for label, value in writer._shared.tensors.items()}
        self.files = {label: np.frombuffer(b"".join(map(bytes, found)), np.uint8) for label, found in pieces.items()}

    def tensor(self, label: str) -> Any:
        return read_tensor(self.files[label], label)


@pytest.mark.parametrize(("hint", "value"), VALUES, ids=[str(place) for place in range(len(VALUES))])
def test_a_value_comes_back(hint, value) -> None:
    found = through(hint, value)
    assert type(found) is type(value)
    assert content(found) == content(value)


@given(st.floats())
def test_floats_come_back_bit_by_bit(value) -> None:
    found = through(float, value)
    assert (math.isnan(value) and math.isnan(found)) or struct.pack("d", found) == struct.pack("d", value)


@given(st.text())
def test_texts_come_back(value) -> None:
    assert through(str, value) == value


@pytest.mark.parametrize(
    ("hint", "value", "problem"),
    [
        (int, True, "it is True, a bool; its type hint says a whole number"),
        (int, "1", "it is '1', a str; its type hint says a whole number"),
        (Colour, "RED", "it is 'RED', a str; its type hint says one of RED, GREEN"),
        (Point, Place(1), "its type hint says the fields of Point"),
        (tuple[int, int], (1,), r"it is \(1,\), a tuple"),
        (tuple[int, ...], [1], r"it is \[1\], a list"),
        (Padding, Point(1), "its type hint says a Padding"),
        (Any, 1, "the type hint Any does not say what a file may hold"),
        (object, 1, "the type hint object does not say what a file may hold"),
        (dict[str, int], {}, "does not say what a file may hold"),
    ],
)
def test_what_a_hint_does_not_say_is_not_written(hint, value, problem) -> None:
    with pytest.raises(Unsupported, match=problem):
        through(hint, value)


@pytest.mark.parametrize(
    ("hint", "said", "problem"),
    [
        (int, "true", "a whole number is wanted, found the truth value true"),
        (int, "S", "a whole number is wanted, found the number S"),
        (int, "1.0", "a whole number is wanted, found the number 1.0"),
        (int, "4611686018427387904 * 16", "64 bits"),
        (bool, "1", "true or false is wanted, found the number 1"),
        (str, "1", "a text is wanted, found the number 1"),
        (float, "'inf'", "a number is wanted, found the text 'inf'"),
        (Dim, "1.5", "a size is wanted, found the number 1.5"),
        (Dim, "tract_py_size('S +')", "found the end, wanted a symbol"),
        (Dim, "tract_py_size('U')", "the symbol 'U' is not declared"),
        (tuple[int, ...], "(1, 2)", "an array, each a whole number is wanted, found a tuple of 2"),
        (tuple[int, int], "(1, 2, 3)", "a tuple of a whole number, a whole number is wanted, found a tuple of 3"),
        (int | None, "[]", "found an array of 0"),
        (Colour, "'__class__'", "one of RED, GREEN is wanted"),
        (DatumType, "'os.system'", "unknown element type 'os.system'"),
        (DatumType, "'__init__'", "unknown element type"),
        (Literal["none", "add"], "'sub'", "one of 'none', 'add' is wanted, found the text 'sub'"),
        (Point, "[('x', 1), ('x', 2)]", "Point: a field is given twice"),
        (Point, "[('y', 1.0)]", "Point: the field 'x' is not there; there are x, y"),
        (Point, "[('x', 1), ('__class__', 1)]", "Point: there is no field '__class__'; there are x, y"),
        (Point, "[('x', 1, 2)]", "found a tuple of 3"),
        (Point, "[('x', [1])]", "Point: x: a whole number is wanted, found an array of 1"),
        (Point | Place, "('TypedModel', [])", "one of Point, Place is wanted, found 'TypedModel'"),
        (Padding, "('Point', [('x', 1)])", "a Padding is wanted, found 'Point'"),
        (
            DType,
            "('QuantizedType', [('storage', 'f32'), ('zero_point', 0), ('scale', 1.0)])",
            "stored as i8, u8 or i32",
        ),
        (DType, "('QuantizedType', [('storage', 'i8'), ('zero_point', 0), ('scale', 'nan')])", "the scale"),
        (Constant, "'nowhere'", "nowhere"),
        (Constant, "[[1.0], [1.0, 2.0]]", "is no tensor"),
        (Constant, "[S]", "a constant is wanted"),
        (SymbolicArray, "([2], [1])", r"1 elements are no tensor of shape \[2\]"),
        (SymbolicArray, "([-1], [1])", "negative size"),
        (SymbolicArray, "([4611686018427387904, 16], [])", "more elements than memory has addresses"),
        (TypedModel, "('nowhere', [], [])", "there is no fragment 'nowhere' with a body"),
        (int, "tract_py_add([], [])", "tract_py_add takes 1 arguments, found 2"),
    ],
)
def test_what_a_file_may_not_hold_is_refused(hint, said, problem) -> None:
    model = TypedModel(SymbolScope(["S"]))
    operators = Operators(model.registry)
    operators.use(PY)
    reader = Reader(model, operators, Nowhere())
    (statement,) = parse_statements(f"x = {said};")
    with pytest.raises(TractError, match=problem):
        kind_of(hint).read(Scope(reader, {}).evaluate(statement.value), reader)


class Nowhere:
    """No tensors."""

    def tensor(self, label: str) -> Any:
        raise CorruptModel(f"there is no {label}")


def test_fields_that_are_as_usual_are_left_out() -> None:
    written = kind_of(Point).write(Point(1, 0.0), Writer(TypedModel(), {PY}))
    assert print_expression(written) == '[("x", 1)]'
    written = kind_of(Point).write(Point(1, -0.0), Writer(TypedModel(), {PY}))
    assert print_expression(written) == '[("x", 1), ("y", -0.0)]'
