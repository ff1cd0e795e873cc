"""Tensors of a file as tensors of a model. Weights in blocks or 16 bits stay so, and unpack where they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import Blocks
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_gguf.reading.file import GgufFile
from tract_gguf.reading.quantised import Quantised, together

_LEFT_OUT: Final = (
    ".attn_rot_embd",
    ".attn.rotary_emb.inv_freq",
    "rope_freqs",
    "rope_factors_long",
    "rope_factors_short",
)
"""What old files hold beside weights, and networks whose positions do not turn that much have no use for."""


class Weights:
    """The tensors of ``file``, each wired into ``model`` when it is first asked for."""

    def __init__(self, file: GgufFile, model: TypedModel) -> None:
        self._file = file
        self._model = model
        self._wired: dict[str, OutletId] = {}
        self._read: set[str] = set()
        self._orders: dict[str, Array] = {}
        """By the name of a matrix, which column each of its columns is, where they lie in another order."""

    def __contains__(self, name: str) -> bool:
        """Whether the file has a tensor of that name."""
        return name in self._file.tensors

    def array(self, name: str, shape: Sequence[int]) -> Array:
        """The elements of a small tensor in f32. Raises CorruptModel for another shape, and where there is none."""
        held = self._stored(name, shape)
        if isinstance(held, Quantised):
            raise Unsupported(f"the tensor {name!r:.80} is quantised, wanted floats")
        return held.to_f32() if isinstance(held, Blocks) else held.astype(np.float32, copy=False)

    def sizes(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor. Raises CorruptModel where there is none."""
        if name not in self._file.tensors:
            raise CorruptModel(f"there is no tensor {name!r:.80}")
        return self._file.tensors[name].shape

    def vector(self, name: str, size: int) -> OutletId:
        """A vector in f32, as scales of norms and biases are."""
        return self._known(name) or self._add(name, self._model.add_const(name, self.array(name, (size,))))

    def matrix(self, name: str, rows: int, columns: int) -> OutletId:
        """A matrix of numbers in f32; what holds them keeps the form that it has in the file."""
        return self._in_order(name, self._held(name, (rows, columns)))

    def matrices(self, name: str, shape: tuple[int, int, int]) -> OutletId:
        """The same of several matrices [matrices,rows,columns], which may be a tensor each, as `part_of` calls them."""
        if name in self or part_of(name, 0) not in self:
            return self._in_order(name, self._held(name, shape))
        return self._known(name) or self._add(name, self._wire(name, self._together(name, shape), shape))

    def rows_of_each(self, name: str) -> int:
        """How many rows each of several matrices has. Raises CorruptModel where these are none."""
        part = part_of(name, 0)
        found = self.sizes(name) if name in self or part not in self else (1, *self.sizes(part))
        if len(found) != 3:
            raise CorruptModel(f"the tensor {name!r:.80} has shape {list(found)}, wanted several matrices")
        return found[1]

    def linear(self, x: Wired, name: str, rows: int) -> Wired:
        """``x`` [B,S,columns] times a matrix ``name.weight`` [rows,columns], plus ``name.bias`` where there is one."""
        columns = x.shape[-1]
        assert isinstance(columns, int)  # sizes of networks are numbers
        matrix = x.with_outlet(self._held(f"{name}.weight", (rows, columns)))
        order = self._orders.get(f"{name}.weight")
        taken = x if order is None else x.op(Gather(2), x.operand(order))
        product = EinSum(AxesMapping.parse("bsk,nk->bsn"), DatumType.F32)
        found = wire_one(self._model, self._model.unique_name(name), product, taken.outlet, matrix.outlet)
        result = Wired(NodeWiring(self._model, name), found)
        if f"{name}.bias" in self:
            result += result.with_outlet(self.vector(f"{name}.bias", rows))
        return result

    def check_all_were_read(self) -> None:
        """Raises Unsupported for weights that the network did not ask for: without them it would be another one."""
        left = [name for name in self._file.tensors if name not in self._read and not _is_left_out(name)]
        if left:
            listed = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
            raise Unsupported(
                f"the network is not built in full: nothing reads the weights {listed}",
                hint="this variant of the architecture is not known; docs/gguf.md lists what is",
            )

    def _known(self, name: str) -> OutletId | None:
        return self._wired.get(name)

    def _add(self, name: str, outlet: OutletId) -> OutletId:
        self._wired[name] = outlet
        return outlet

    def _held(self, name: str, shape: tuple[int, ...]) -> OutletId:
        return self._known(name) or self._add(name, self._wire(name, self._stored(name, shape), shape))

    def _in_order(self, name: str, outlet: OutletId) -> OutletId:
        """A matrix whose columns are in order. Raises Unsupported for another."""
        if name in self._orders:
            raise Unsupported(f"the columns of {name!r:.80} lie in another order, and more than products read it")
        return outlet

    def _stored(self, name: str, shape: Sequence[int]) -> Array | Blocks | Quantised:
        found, wanted = self.sizes(name), tuple(shape)
        is_row = len(wanted) == 2 and wanted[0] == 1
        if found != wanted and not (is_row and found == wanted[1:]):  # files have a matrix of one row as a vector
            raise CorruptModel(f"the tensor {name!r:.80} has shape {list(found)}, wanted {list(wanted)}")
        self._read.add(name)
        held = self._file.tensors[name].stored()
        if isinstance(held, np.ndarray) and not DatumType.from_numpy(held.dtype).is_float():
            raise Unsupported(f"the tensor {name!r:.80} has elements of {held.dtype}, wanted floats")
        return held

    def _together(self, name: str, shape: tuple[int, int, int]) -> Array | Blocks | Quantised:
        """Matrices that are a tensor each, copied to where they are one. Raises Unsupported where they are unlike."""
        parts = [self._stored(part_of(name, number), shape[1:]) for number in range(shape[0])]
        arrays, blocks = [one for one in parts if isinstance(one, np.ndarray)], [*_in_blocks(parts)]
        if len(arrays) == len(parts) and len({one.dtype for one in arrays}) == 1:
            return np.stack(arrays)
        if len(blocks) == len(parts) and len({one.format.name for one in blocks}) == 1:
            return Blocks(blocks[0].format, shape, np.concatenate([one.content for one in blocks]))
        quantised = [one for one in parts if isinstance(one, Quantised)]
        if len(quantised) == len(parts):
            return together(quantised)
        raise Unsupported(f"the matrices that make {name!r:.80} are not all held in the same way")

    def _wire(self, name: str, held: Array | Blocks | Quantised, shape: tuple[int, ...]) -> OutletId:
        if isinstance(held, Quantised):
            return self._dequantised(name, held)
        if not isinstance(held, Blocks):
            form = FORMATS.get(DatumType.from_numpy(held.dtype).short)
            if form is None:
                return self._model.add_const(name, held.astype(np.float32, copy=False).reshape(shape))
            held = Blocks(form, shape, held.reshape(-1).view(np.uint8))
        form = held.format
        packed = held.content.reshape(*shape[:-1], shape[-1] // form.length, form.size)
        blocks = self._model.add_const(f"{name}.blocks", packed)
        return wire_one(self._model, name, UnpackBlocks(form.name), blocks)

    def _dequantised(self, name: str, held: Quantised) -> OutletId:
        if held.order is not None:
            self._orders[name] = held.order
        parts = {"codes": held.codes, "scale": held.scale, "zero": held.zero}
        known = [self._model.add_const(f"{name}.{part}", array) for part, array in parts.items()]
        op = DequantizeLinear(DatumType.F32, held.codes.ndim - 1, held.block)
        return wire_one(self._model, name, op, *known)


def part_of(name: str, number: int) -> str:
    """What the matrix of an expert is called where each is a tensor: ``ffn_up.3.weight`` of ``ffn_up_exps.weight``."""
    return f"{name.removesuffix('_exps.weight')}.{number}.weight"


def _in_blocks(parts: Sequence[object]) -> Iterator[Blocks]:
    yield from (one for one in parts if isinstance(one, Blocks))


def _is_left_out(name: str) -> bool:
    return any(part in name for part in _LEFT_OUT)
