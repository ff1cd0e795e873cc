"""Tensors that lie in blocks on the device, and the launch that writes their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_llvm.language.types import ElementType
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.kernels.unpack import UnpackPlan
from tract_cuda.maps import is_multiple, vector_width
from tract_cuda.program import Launch


@frozen
class BlockRecord:
    """Where the parts of a block lie among its bytes, in tensors of bytes [..., blocks, ``size``].

    ``codes``, ``scale``, ``zero``: the first byte of each; each is at a multiple of what one of its elements takes, as
    the size is. ``zero`` counts only where the form says that each block has a zero point.
    """

    form: BlockForm
    size: int
    codes: int
    scale: int
    zero: int = 0

    @property
    def alignment(self) -> int:
        """Bytes at multiples of which blocks begin."""
        return max(self.form.unit.bytes, *(element.bytes for _, element in self.form.parts()))

    def tensor(self, data: View, shape: tuple[Dim, ...]) -> BlockTensor:
        """The tensor of a shape whose blocks are bytes without gaps."""
        starts = {"scale": self.scale, "zero": self.zero}
        codes, *others = (
            self._part(data, element, start)
            for element, start in [
                (self.form.unit, self.codes),
                *((element, starts[name]) for name, element in self.form.parts()),
            ]
        )
        return BlockTensor(self.form, len(shape) - 1, shape, codes, tuple(others))

    def _part(self, data: View, element: ElementType, start: int) -> View:
        """What begins at a byte of each block, as [..., blocks]."""
        strides = tuple(stride // element.bytes for stride in data.strides[:-1])
        offset = (data.offset + start) // element.bytes
        return View(data.storage, element, data.shape[:-1], strides, offset)


@frozen
class BlockTensor:
    """A tensor of a ``shape`` that lies in blocks of a ``form`` along its axis ``axis``.

    ``codes``: of each block, where its codes begin, which lie side by side; ``others``: its other parts, as the form
    names them. These are tensors of that shape, but for the number of blocks along the axis.
    """

    form: BlockForm
    axis: int
    shape: tuple[Dim, ...]
    codes: View
    others: tuple[View, ...]

    @property
    def is_ragged(self) -> bool:
        """Whether the last block along the axis may be a short one, so that there are codes for no numbers."""
        return not is_multiple(self.shape[self.axis], self.form.length)

    @property
    def parts(self) -> Mapping[str, View]:
        """All that lies in memory, by name."""
        names = (name for name, _ in self.form.parts())
        return {"codes": self.codes, **dict(zip(names, self.others, strict=True))}


def unpack_launch(tensor: BlockTensor, result: View, nodes: Sequence[int] = ()) -> Launch:
    """The launch that writes all numbers of a tensor."""
    kept = {name: part.strides for name, part in tensor.parts.items()}
    return launch_of_words(tensor, Written(result, tensor.axis, kept, {}), nodes)


@frozen
class Written:
    """Where numbers in blocks go: to a ``result``, along whose ``axis`` blocks are.

    ``strides``: of the parts, by name, along the axes of the result; that along ``axis`` does not count. With
    positions, ``numbers``, whose strides are among these, what kernels are told of them is ``named``.
    """

    result: View
    axis: int
    strides: Mapping[str, tuple[Dim, ...]]
    named: Mapping[str, View | Dim]


def launch_of_words(tensor: BlockTensor, written: Written, nodes: Sequence[int]) -> Launch:
    """The launch that writes numbers of blocks."""
    form, parts, result, axis, named = tensor.form, tensor.parts, written.result, written.axis, written.named
    tensors: dict[str, View] = {**parts, "result": result}
    along = {name: _without(one, axis) for name, one in {**written.strides, "result": result.strides}.items()}
    loops = collapsed(_without(result.shape, axis), list(along.values())) or [StridedLoop(1, (0,) * len(along))]
    words = ceil_div(tensor.shape[tensor.axis], form.length) * form.words
    index = named["numbers"] if named else None
    element = index.element if isinstance(index, View) else None
    plan = UnpackPlan(form, len(loops), element, _wide(tensor, result, axis), tensor.is_ragged)
    count = product([one.size for one in loops]) * words
    given: dict[str, View | Dim] = {"count": count, **named, **tensors, "depth": tensor.shape[tensor.axis]}
    given |= {f"size{number}": loop.size for number, loop in enumerate(loops)} | {f"size{len(loops)}": words}
    for slot, name in enumerate(along):
        given |= {f"{name}.{number}": loop.strides[slot] for number, loop in enumerate(loops)}
    given |= {f"{name}.along": part.strides[tensor.axis] for name, part in parts.items()}
    given["result.along"] = result.strides[axis]
    return Launch.of(plan, [ceil_div(count, plan.threads)], given, [result], nodes)


def _wide(tensor: BlockTensor, result: View, axis: int) -> int:
    """How many numbers are written at once."""
    if tensor.is_ragged or result.strides[axis] != 1:
        return 1
    return vector_width([result.element], [tensor.form.run, result.offset, *_without(result.strides, axis)])


def _without(dims: Sequence[Dim], axis: int) -> tuple[Dim, ...]:
    return (*dims[:axis], *dims[axis + 1 :])
