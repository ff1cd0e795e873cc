"""Tensors: made from anything, given to anything, converted, compared, shown."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tract_core import DatumType, Tensor, TractError
from tract_core.data import QuantizedType
from tract_core.errors import ConsumedError, FactError, InputError, Unsupported

HELD = [
    kind
    for kind in DatumType
    if kind not in (DatumType.BLOB, DatumType.COMPLEX_F16, DatumType.TDIM) and not kind.name.startswith("COMPLEX_I")
]


def test_from_numpy_copies() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor.from_numpy(array)
    array[0, 0] = 99
    assert tensor.to_numpy()[0, 0] == 0
    assert tensor.datum_type() is DatumType.F32
    assert tensor.shape == (2, 3)
    assert tensor.ndim == 2


def test_an_array_without_axes_keeps_none() -> None:
    tensor = Tensor.from_numpy(np.array(8, dtype=np.int64))
    assert tensor.to_numpy().shape == ()
    assert str(tensor) == "Tensor(,I64 8)"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-3],
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.zeros((0, 3), np.float32),
        np.frombuffer(b"\0" + np.arange(5, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32),
    ],
    ids=["strided", "transposed", "byte-swapped", "empty", "unaligned"],
)
def test_any_layout(array: np.ndarray[Any, Any]) -> None:
    found = Tensor.from_numpy(array).to_numpy()
    assert found.dtype == np.dtype(np.float32)
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("array", [np.array(["a", "bé"]), np.array(["a", "bé"], dtype=object)], ids=["U", "O"])
def test_strings(array: np.ndarray[Any, Any]) -> None:
    tensor = Tensor.from_numpy(array)
    assert tensor.datum_type() is DatumType.STRING
    assert tensor.to_numpy().tolist() == ["a", "bé"]
    assert str(tensor) == "Tensor(2,STRING a, bé)"


def test_bytes_are_texts() -> None:
    assert Tensor.from_numpy(np.array([b"a", b"bc"])).to_numpy().tolist() == ["a", "bc"]


def test_objects_that_are_no_texts_are_refused() -> None:
    with pytest.raises(FactError, match="an array of Python objects holds a dict, wanted texts"):
        Tensor.from_numpy(np.array(["a", {}], dtype=object))


@pytest.mark.parametrize("array", [np.array(["2020-01-01"], dtype="datetime64[D]"), np.zeros(2, "i4,i4")])
def test_types_without_a_counterpart_are_refused(array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(FactError, match="no element type for NumPy's"):
        Tensor.from_numpy(array)


def test_to_numpy_gives_a_copy_each_time() -> None:
    tensor = Tensor.from_numpy(np.zeros(3, np.float32))
    tensor.to_numpy()[:] = 1
    assert tensor.to_numpy().tolist() == [0, 0, 0]


def test_into_numpy_consumes() -> None:
    tensor = Tensor.from_numpy(np.ones(3, np.float32))
    array = tensor.into_numpy()
    array[0] = 5
    with pytest.raises(ConsumedError, match=r"this Tensor was consumed by Tensor\.into_numpy"):
        tensor.to_numpy()
    for use in (
        tensor.datum_type,
        tensor.dump,
        tensor.into_numpy,
        tensor.__dlpack__,
        lambda: tensor == Tensor.from_numpy(array),
    ):
        with pytest.raises(ConsumedError):
            use()


def test_equality_is_type_shape_and_content() -> None:
    a = Tensor.from_numpy(np.array([1, 2], np.int32))
    assert a == Tensor.from_numpy(np.array([1, 2], np.int32))
    assert hash(a) == hash(Tensor.from_numpy(np.array([1, 2], np.int32)))
    assert a != Tensor.from_numpy(np.array([1, 3], np.int32))
    assert a != Tensor.from_numpy(np.array([[1, 2]], np.int32))
    assert a != Tensor.from_numpy(np.array([1, 2], np.int64))
    assert a != Tensor.from_numpy(np.array([1, 2, 3, 4], np.int32))
    assert a != "something else"
    nan = np.array([np.nan], np.float32)
    assert Tensor.from_numpy(nan) == Tensor.from_numpy(nan)


def test_quantised_tensors_differ_by_their_parameters() -> None:
    kind = QuantizedType(DatumType.U8, 5, 0.5)
    stored = np.array([5, 7], np.uint8)
    assert Tensor.from_numpy(stored, kind) == Tensor.from_numpy(stored, QuantizedType(DatumType.U8, 5, 0.5))
    assert Tensor.from_numpy(stored, kind) != Tensor.from_numpy(stored, QuantizedType(DatumType.U8, 4, 0.5))
    assert str(Tensor.from_numpy(stored, kind)) == "Tensor(2,QU8(Z:5 S:0.5) [5](0), [7](1))"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.arange(12, dtype=np.uint8), "Tensor(12,U8 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)"),
        (np.arange(13, dtype=np.uint8), "Tensor(13,U8 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11...)"),
        (np.array([[0.1, 1], [-2.5, 1e20]], np.float32), "Tensor(2,2,F32 0.1, 1, -2.5, 100000000000000000000)"),
        (np.array([np.nan, np.inf, -np.inf]), "Tensor(3,F64 NaN, inf, -inf)"),
        (np.array([True, False]), "Tensor(2,BOOL true, false)"),
        (np.array([0.5], ml_dtypes.bfloat16), "Tensor(1,BF16 0.5)"),
        (np.zeros((0, 2), np.int8), "Tensor(0,2,I8 )"),
    ],
)
def test_text_form(array: np.ndarray[Any, Any], text: str) -> None:
    tensor = Tensor.from_numpy(array)
    assert tensor.dump() == str(tensor) == repr(tensor) == text


def test_numpy_reads_it_without_a_copy_and_cannot_write() -> None:
    tensor = Tensor.from_numpy(np.arange(3, dtype=np.float32))
    seen = np.asarray(tensor)
    assert np.shares_memory(seen, np.asarray(tensor))
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1
    copied = np.array(tensor)
    copied[0] = 7
    assert np.asarray(tensor, dtype=np.int64).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="need a copy"):
        np.asarray(tensor, dtype=np.int64, copy=False)


@pytest.mark.parametrize("copy", [None, True])
def test_dlpack_hands_out_a_copy(copy: bool | None) -> None:
    """A library that writes to what is marked as read-only, as PyTorch does, changes neither a tensor nor a model."""
    tensor = Tensor.from_numpy(np.arange(3, dtype=np.float32))
    assert tensor.__dlpack_device__() == (1, 0)
    seen = np.from_dlpack(tensor, copy=copy)  # pyright: ignore[reportArgumentType]: the protocol is duck-typed
    assert seen.tolist() == [0, 1, 2]
    seen[0] = 9
    assert tensor.to_numpy()[0] == 0


def test_dlpack_hands_out_the_memory_when_that_is_asked_for() -> None:
    tensor = Tensor.from_numpy(np.arange(3, dtype=np.float32))
    seen = np.from_dlpack(tensor, copy=False)  # pyright: ignore[reportArgumentType]: the protocol is duck-typed
    assert np.shares_memory(seen, np.asarray(tensor))
    assert not seen.flags.writeable


@pytest.mark.parametrize("options", [{"stream": 1}, {"dl_device": (2, 0)}, {"copy": False}], ids=str)
def test_dlpack_refuses_with_a_buffer_error(options: dict[str, Any]) -> None:
    tensor = Tensor.from_numpy(np.arange(3, dtype=np.float32))
    with pytest.raises(BufferError) as caught:
        tensor.__dlpack__(**options)
    assert isinstance(caught.value, TractError)


def test_dlpack_does_not_know_every_type() -> None:
    with pytest.raises(BufferError, match="float8_e4m3fn array cannot be exported through DLPack"):
        Tensor.from_numpy(np.ones(2, ml_dtypes.float8_e4m3fn)).__dlpack__()


@pytest.mark.parametrize("array", [np.arange(3), np.array(["x", "y"]), np.ones(2, ml_dtypes.bfloat16)], ids=str)
def test_pickling(array: np.ndarray[Any, Any]) -> None:
    tensor = Tensor.from_numpy(array)
    assert pickle.loads(pickle.dumps(tensor)) == tensor


@pytest.mark.parametrize("to", HELD, ids=str)
@pytest.mark.parametrize("kind", HELD, ids=str)
def test_small_numbers_survive_every_conversion(kind: DatumType, to: DatumType) -> None:
    """0 and 1 exist in nearly every type; where a conversion is refused, it says why."""
    values = [1, 1] if DatumType.F8E8M0FNU in (kind, to) else [0, 1]
    start = Tensor.from_numpy(np.array(values, dtype=np.float32)).convert_to(kind)
    if kind.is_complex() and not (to.is_complex() or to is DatumType.STRING or to.is_bool()):
        with pytest.raises(FactError, match=r"complex numbers as .* would lose their imaginary part"):
            start.convert_to(to)
        return
    found = start.convert_to(to)
    assert found.datum_type() is to
    assert found.to_numpy().dtype == to.numpy
    if to is DatumType.STRING:
        assert len(set(found.to_numpy().tolist())) == len(set(values))
    else:
        assert found.to_numpy().astype(np.complex64 if to.is_complex() else np.float32).tolist() == values


@pytest.mark.parametrize(
    ("values", "to", "wanted"),
    [
        ([1.9, -1.9, 300.0, -300.0, np.nan, np.inf, -np.inf], "i8", [1, -1, 127, -128, 0, 127, -128]),
        ([1.9, -1.9, 300.0, np.nan], "u8", [1, 0, 255, 0]),
        ([1e30, -1e30, 2.0], "i64", [2**63 - 1, -(2**63), 2]),
        ([1e30, -1.0, 2.0], "u64", [2**64 - 1, 0, 2]),
        ([9.0, -9.0, 3.7], "i4", [7, -8, 3]),
        ([99.0, -1.0], "u4", [15, 0]),
        ([0.0, 0.5, -1.0, np.nan], "bool", [False, True, True, True]),
    ],
)
def test_floats_to_integers_stop_at_the_ends(values: list[float], to: str, wanted: list[int]) -> None:
    found = Tensor.from_numpy(np.array(values, np.float64)).convert_to(to).to_numpy()
    carrier = object if to in ("u64", "i64") else np.int64
    assert found.astype(carrier).tolist() == wanted


@pytest.mark.parametrize(
    ("values", "to", "wanted"), [([300, -1], "u8", [44, 255]), ([128, 255], "i8", [-128, -1]), ([17, 8], "i4", [1, -8])]
)
def test_integers_wrap_around(values: list[int], to: str, wanted: list[int]) -> None:
    found = Tensor.from_numpy(np.array(values, np.int64)).convert_to(to).to_numpy()
    assert found.astype(np.int64).tolist() == wanted


def test_large_integers_are_exact() -> None:
    values = [2**63 - 1, -(2**63) + 1]
    assert Tensor.from_numpy(np.array(values, np.int64)).convert_to("string").to_numpy().tolist() == [
        str(value) for value in values
    ]
    texts = Tensor.from_numpy(np.array(["18446744073709551615", "1"]))
    assert texts.convert_to(DatumType.U64).to_numpy().tolist() == [2**64 - 1, 1]


def test_texts_and_numbers() -> None:
    texts = Tensor.from_numpy(np.array(["1.5", "-2", " 3e2 "]))
    assert texts.convert_to(DatumType.F32).to_numpy().tolist() == [1.5, -2.0, 300.0]
    assert texts.convert_to("i16").to_numpy().tolist() == [1, -2, 300]
    assert Tensor.from_numpy(np.array(["1+2j"])).convert_to("complex_f64").to_numpy().tolist() == [1 + 2j]
    with pytest.raises(FactError, match="the text 'four' is no number"):
        Tensor.from_numpy(np.array(["four"])).convert_to("f32")


def test_quantised() -> None:
    kind = QuantizedType(DatumType.U8, 10, 0.5)
    quantised = Tensor.from_numpy(np.array([-5.0, 0.25, 0.75, 1e9], np.float32)).convert_to(kind)
    assert quantised.datum_type() == kind
    assert quantised.to_numpy().tolist() == [0, 10, 12, 255]  # 0.5 and 1.5 steps go to the even side
    assert quantised.convert_to("f32").to_numpy().tolist() == [-5.0, 0.0, 1.0, 122.5]
    assert quantised.convert_to("i32").to_numpy().tolist() == [-5, 0, 1, 122]


def test_sizes() -> None:
    sizes = Tensor.from_numpy(np.array([3, 4])).convert_to(DatumType.TDIM)
    assert str(sizes) == "Tensor(2,TDIM 3, 4)"
    assert sizes.convert_to("i64").to_numpy().tolist() == [3, 4]
    symbolic = Tensor.from_numpy(np.array(["S+1"])).convert_to("tdim")
    assert str(symbolic) == "Tensor(1,TDIM S+1)" or str(symbolic) == "Tensor(1,TDIM 1+S)"
    with pytest.raises(TractError, match="depends on S"):
        symbolic.convert_to("i64")
    with pytest.raises(FactError, match=r"1\.5 of type F64 is no size"):
        Tensor.from_numpy(np.array([1.5])).convert_to("tdim")


@pytest.mark.parametrize("kind", [DatumType.COMPLEX_F16, DatumType.COMPLEX_I32, DatumType.BLOB])
def test_types_that_no_array_holds(kind: DatumType) -> None:
    with pytest.raises(Unsupported, match="cannot be held"):
        Tensor.from_numpy(np.ones(2, np.float32)).convert_to(kind)


@pytest.mark.parametrize("kind", ["f33", 0x7777, None, np.float32, [1]])
def test_what_is_no_type(kind: Any) -> None:
    with pytest.raises(FactError, match="element type"):
        Tensor.from_numpy(np.ones(2, np.float32)).convert_to(kind)


def test_types_by_number_as_in_the_established_binding() -> None:
    assert Tensor.from_numpy(np.ones(1, np.float32)).convert_to(0x38).datum_type() is DatumType.F64


@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.array([3], np.int8), np.array([[True]]), np.array("text", object)]
)
def test_a_single_element_is_a_plain_value(value: Any) -> None:
    tensor = Tensor.from_numpy(value)
    plain = np.asarray(value).item()
    assert tensor.item() == plain
    assert type(tensor.item()) is type(plain)
    assert bool(tensor) is bool(plain)
    if not isinstance(plain, str):
        assert float(tensor) == float(plain)
        assert int(tensor) == int(plain)


def test_several_elements_are_no_truth_and_no_number() -> None:
    """As in NumPy: whether any or all of them were meant cannot be told."""
    for shape in ((2,), (0,), (1, 3)):
        tensor = Tensor.from_numpy(np.zeros(shape))
        for ask in (bool, float, int, Tensor.item):
            with pytest.raises(InputError, match="is no single value: its shape is"):
                ask(tensor)


def test_tensors_are_made_by_from_numpy() -> None:
    for values in ([1, 2], np.zeros(3), (), 1.5):
        with pytest.raises(InputError, match=r"Tensor\(...\) takes no elements, got") as caught:
            Tensor(values)
        assert "Tensor.from_numpy([[1.0, 2.0]]) makes a tensor" in str(caught.value.hint)
    assert Tensor.from_numpy([[1.0, 2.0]]).to_numpy().tolist() == [[1, 2]]


def test_a_quantised_tensor_from_what_it_stores() -> None:
    kind = QuantizedType(DatumType.U8, 5, 0.5)
    tensor = Tensor.from_numpy(np.array([5, 7], np.uint8), kind)
    assert tensor.datum_type() == kind
    assert tensor.convert_to("f32").to_numpy().tolist() == [0, 1]
    with pytest.raises(FactError, match=r"QU8\(Z:5 S:0.5\) is not stored as i8, the type of the array"):
        Tensor.from_numpy(np.array([5, 7], np.int8), kind)


def test_length_elements_and_iteration_are_those_of_numpy() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensor = Tensor.from_numpy(array)
    assert (tensor.dtype, tensor.size, len(tensor)) == (np.dtype(np.float32), 12, 3)
    assert tensor[1, 2] == np.float32(6)
    assert tensor[-1].argmax() == 3
    assert tensor[:, 1:3].tolist() == array[:, 1:3].tolist()
    assert tensor[tensor.view() > 10].tolist() == [11]
    assert [row.tolist() for row in tensor] == array.tolist()
    assert np.shares_memory(tensor[0], tensor.view())
    with pytest.raises(ValueError, match="read-only"):
        tensor[0][0] = 5
    with pytest.raises(TypeError):
        tensor[0] = 5  # pyright: ignore[reportIndexIssue]: what is tested


def test_elements_that_are_not_there() -> None:
    tensor = Tensor.from_numpy(np.zeros((2, 3)))
    for key in (2, (0, 3), (0, 0, 0), "a"):
        with pytest.raises(InputError, match=r"the shape of the tensor is \(2, 3\)") as caught:
            tensor[key]
        assert isinstance(caught.value, IndexError)


def test_a_tensor_without_axes_has_no_length() -> None:
    tensor = Tensor.from_numpy(5)
    for use in (lambda: len(tensor), lambda: list(tensor)):
        with pytest.raises(TypeError, match="a tensor without axes has no length"):
            use()
    assert tensor[()] == 5


def test_tensors_in_notebooks() -> None:
    shown = Tensor.from_numpy(np.array([["<b>", "&"]]))._repr_html_()
    assert "<code>1,2,string</code>" in shown
    assert "&lt;b&gt;" in shown
    assert "'<b>" not in shown
    large = Tensor.from_numpy(np.zeros((1000, 1000), np.float32))._repr_html_()
    assert "1000,1000,f32" in large
    assert len(large) < 1000
    consumed = Tensor.from_numpy(np.zeros(1))
    consumed.into_numpy()
    assert consumed._repr_html_() == "<b>Tensor</b> (consumed)"
