"""Tensors: arrays with an element type, immutable, as they go into and come out of models."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.api.computing import Computing
from tract_core.api.handle import Handle
from tract_core.errors import FactError, InputError
from tract_core.texts import printable

if TYPE_CHECKING:
    import numpy.typing as npt

    from tract_core.data import DatumType, DType
    from tract_core.plugins.keys import Array

SHOWN = 12
"""Elements that the text form shows."""


class ExportError(InputError, BufferError):
    """A tensor cannot be given to another library in the way it asks for."""


class UnsizedError(InputError, TypeError):
    """The length was asked for of a tensor that has no axes."""


class NoSuchElementError(InputError, IndexError):
    """A tensor was indexed with what its shape does not have."""


class Tensor(Handle["Array"], Computing):
    """A tensor: element type, shape and elements, none of which changes. `Tensor.from_numpy` makes one.

    ``len(tensor)``, ``tensor[0]``, iteration, arithmetic, comparisons, and methods such as ``tensor.argmax(axis=1)``
    are those of NumPy: they give arrays, and NumPy's scalars. Where both are tensors, ``tensor == other`` is one answer
    instead: whether type, shape and elements are the same, bit for bit. NumPy sees the memory of a tensor, read-only
    (``numpy.asarray(tensor)``). Libraries that speak DLPack get a copy (``torch.from_dlpack(tensor)``), unless they ask
    for the memory itself (``copy=False``): not all of them respect that it is read-only.
    """

    __slots__ = ("_special",)

    _advice = "keep a reference to what into_numpy returned, or call to_numpy, which consumes nothing"

    def __init__(self, *values: Any) -> None:
        given = ", ".join(type(value).__name__ for value in values) or "nothing"
        raise InputError(
            f"Tensor(...) takes no elements, got {given}",
            hint="Tensor.from_numpy([[1.0, 2.0]]) makes a tensor, of arrays, lists and numbers alike",
        )

    @staticmethod
    def from_numpy(array: npt.ArrayLike, datum_type: DType | None = None) -> Tensor:
        """A tensor with a copy of an array's elements; strings are welcome, and an array without axes keeps none.

        ``datum_type``: a quantised type, where the array holds its stored integers. Raises FactError for element types
        that tensors cannot have, as dates, and for a ``datum_type`` that does not store the array's elements.
        """
        kinds = _kinds()
        try:
            found = np.asarray(array)
        except (ValueError, TypeError, RuntimeError) as error:  # the last one is what PyTorch raises
            raise FactError(f"a {type(array).__name__} is no array: {error}", where="Tensor.from_numpy") from None
        if found.dtype.kind in "OSUT":
            return Tensor.around(array_of_strings(found, "Tensor.from_numpy"), kinds.STRING)
        kind = kinds.from_numpy(found.dtype)
        if datum_type is not None and datum_type.storage != kind:
            raise FactError(f"{datum_type} is not stored as {kind.short}, the type of the array", hint="see convert_to")
        return Tensor.around(np.array(found, dtype=kind.numpy, order="C", copy=True, subok=False), datum_type or kind)

    @staticmethod
    def around(array: Array, datum_type: DType | None = None) -> Tensor:
        """A tensor whose memory is that of ``array``, to which nobody may write any more: `from_numpy` copies."""
        return tensor_of(array, _kinds().from_numpy(array.dtype) if datum_type is None else datum_type)

    @property
    def _type(self) -> DType:
        return self._special or _kinds().from_numpy(self._held.dtype)

    def to_numpy(self) -> Array:
        """A new array with the elements (for a quantised tensor: the stored integers; for strings: Python objects)."""
        return np.array(self._held)

    def numpy(self) -> Array:
        """The same as `to_numpy`, by the name that it has elsewhere."""
        return self.to_numpy()

    def into_numpy(self) -> Array:
        """The elements as an array of one's own; the tensor is consumed."""
        array = self.to_numpy()
        self._hand_over("Tensor.into_numpy")
        return array

    def view(self) -> Array:
        """The elements without a copy, read-only."""
        view: Any = self._held.view()
        view.setflags(False)  # by place, in a third of the time that ``flags.writeable`` takes
        return view

    def datum_type(self) -> DType:
        """The element type."""
        _ = self._held
        return self._type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type as NumPy has it: that of the stored integers for a quantised tensor, `object` for texts."""
        return self._held.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of every axis, outermost first."""
        return self._held.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._held.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._held.size

    def __len__(self) -> int:
        if self.ndim == 0:
            raise UnsizedError("a tensor without axes has no length", hint="item() gives its only element")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.view()[key]
        except IndexError as error:
            raise NoSuchElementError(f"{error}; the shape of the tensor is {self.shape}") from None

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def item(self) -> Any:
        """The only element, as a plain Python value. Raises InputError when there are more, or none."""
        array = self._held
        if array.size != 1:
            raise InputError(
                f"a tensor of {array.size} elements is no single value: its shape is {array.shape}",
                hint="to_numpy() gives all elements",
            )
        return array.item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def convert_to(self, datum_type: DType | str | int) -> Tensor:
        """The same numbers in another element type, as a new tensor.

        Floats lose their fraction on the way to integers and stop at the ends of the range, a NaN becomes 0; integers
        that do not fit wrap around. Numbers and texts become each other. Raises FactError for complex numbers as real
        ones, for texts that are no numbers, and for element types that no array can hold.
        """
        from tract_core.api.convert import convert, datum_type_like

        kind = datum_type_like(datum_type)
        return Tensor.around(convert(self._held, self._type, kind), kind)

    def dump(self) -> str:
        """``Tensor(<shape>,<TYPE> v0, v1, ...)``, with 12 elements at most."""
        array = self._held
        shown = ", ".join(_element(value, self._type) for value in array.reshape(-1)[:SHOWN])
        more = "..." if array.size > SHOWN else ""
        return f"Tensor({','.join(map(str, array.shape))},{self._type} {shown}{more})"

    __str__ = dump
    __repr__ = dump

    def _repr_html_(self) -> str:
        """The fact and the first and last elements of every axis, for notebooks."""
        if self.is_consumed:
            return "<b>Tensor</b> (consumed)"
        from html import escape

        from tract_core.model.fact import TypedFact

        shown = np.array2string(self._held, threshold=200, edgeitems=3, max_line_width=100)
        return (
            f"<b>Tensor</b> <code>{escape(str(TypedFact.of(self._type, self.shape)))}</code><pre>{escape(shown)}</pre>"
        )

    def _numbers(self) -> Array:
        if self._type.is_quantized():
            raise FactError(
                f"a tensor of {self._type} holds integers that stand for other numbers",
                hint="convert_to('f32') gives those, to_numpy() the integers",
            )
        return self.view()

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Tensor):
            return self._numbers() == other if self._compares_with(other) else NotImplemented
        from tract_core.data import Constant

        mine, others = self._held, other._held
        return bool(self._type == other._type) and Constant(mine) == Constant(others)

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return not self == other
        return self._numbers() != other if self._compares_with(other) else NotImplemented

    def _compares_with(self, other: object) -> bool:
        """Whether something that is no tensor is compared with each element: what is no array either is not equal."""
        texts = self._type is _kinds().STRING
        return (
            isinstance(other, str if texts else Number | np.generic)
            or hasattr(other, "__array__")
            or type(other) is list
        )

    def __hash__(self) -> int:
        return hash((self._type, self._held.shape))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        view = self.view()
        if dtype is None or np.dtype(dtype) == view.dtype:
            return np.array(view) if copy else view
        if copy is False:
            raise ValueError(f"{view.dtype} elements as {np.dtype(dtype)} need a copy, and copy=False forbids it")
        return view.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU, always."""
        return (1, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The tensor for another library: a copy, or with ``copy=False`` its memory, marked as read-only.

        PyTorch writes to memory that is marked so. That of a tensor may be a constant of a model, or lie in a file,
        where writing ends the process.

        Raises ExportError, which is a BufferError, for another device, a stream, or an element type unknown to DLPack.
        """
        if stream is not None or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise ExportError("the tensor is on the CPU, another device or a stream was asked for")
        if copy is not False:
            return _capsule(self.to_numpy(), max_version=max_version)
        if max_version is None or max_version[0] < 1:
            raise ExportError("the receiver cannot take read-only memory, and copy=False forbids a copy")
        return _capsule(self.view(), max_version=max_version)

    def __reduce__(self) -> tuple[object, ...]:
        return Tensor.around, (self.to_numpy(), self._type)


def tensor_of(array: Array, datum_type: DType | None) -> Tensor:
    """As `Tensor.around`, where ``None`` is for an element type that that of the array says, if somebody asks."""
    tensor: Tensor = object.__new__(Tensor)
    tensor._content = array  # pyright: ignore[reportPrivateUsage]: a function, as it is for this package alone
    tensor._consumer = ""  # pyright: ignore[reportPrivateUsage]
    tensor._special = datum_type  # pyright: ignore[reportPrivateUsage]
    return tensor


def is_of(tensor: Tensor, datum_type: DType | None, dtype: np.dtype[Any]) -> bool:
    """Whether a tensor is of an element type; ``None`` is for the one that NumPy's ``dtype`` says."""
    special = tensor._special  # pyright: ignore[reportPrivateUsage]: as above
    if special is None and datum_type is None:
        return tensor.dtype == dtype
    return tensor.datum_type() == (datum_type or _kinds().from_numpy(dtype))


def array_of_strings(array: Array, where: str) -> Array:
    """An array of texts as an array of Python objects: ``str``, or ``bytes`` where they were given in an object array.

    Raises FactError when an object array holds something else.
    """
    if array.dtype.kind == "S":
        return _mapped(array, _decoded)
    result = array.astype(object) if array.dtype.kind != "O" else np.array(array)
    for element in result.reshape(-1).tolist():
        if not isinstance(element, (str, bytes)):
            found = type(element).__name__
            raise FactError(f"an array of Python objects holds a {found}, wanted texts", where=where)
    return result


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _mapped(array: Array, function: Any) -> Array:
    result: Array = np.empty(array.size, dtype=object)
    result[:] = [function(element) for element in array.reshape(-1).tolist()]
    return result.reshape(array.shape)


def _capsule(array: Array, **options: Any) -> Any:
    from tract_core.api.dlpack import capsule_of

    try:
        return capsule_of(array, **options)
    except (BufferError, TypeError, ValueError) as error:
        raise ExportError(f"a {array.dtype} array cannot be exported through DLPack: {error}") from error


def _kinds() -> type[DatumType]:
    """The element types, which are imported when somebody asks for one."""
    from tract_core.data import DatumType

    return DatumType


def _element(value: Any, kind: DType) -> str:
    from tract_core.data import QuantizedType

    if isinstance(kind, QuantizedType):
        return f"[{int(value)}]({_number((int(value) - kind.zero_point) * kind.scale)})"
    if kind.is_bool():
        return "true" if value else "false"
    if kind.is_float():
        return _number(float(value), value)
    return printable(str(value))


def _number(number: float, exact: Any = None) -> str:
    """The shortest text that reads back as the same number, without an exponent."""
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "inf" if number > 0 else "-inf"
    native = np.float64(number) if exact is None or exact.dtype.kind != "f" else exact
    return np.format_float_positional(native, trim="-")
