"""Tensors of a file as tensors of a model. Weights in blocks or 16 bits stay so, and unpack where they are read."""

from __future__ import annotations

from collections.abc import Sequence
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
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_gguf.reading.file import GgufFile

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

    def __contains__(self, name: str) -> bool:
        """Whether the file has a tensor of that name."""
        return name in self._file.tensors

    def array(self, name: str, shape: Sequence[int]) -> Array:
        """The elements of a small tensor in f32. Raises CorruptModel for another shape, and where there is none."""
        held = self._stored(name, shape)
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
        return self._known(name) or self._add(name, self._matrix(name, (rows, columns)))

    def linear(self, x: Wired, name: str, rows: int) -> Wired:
        """``x`` [B,S,columns] times a matrix ``name.weight`` [rows,columns], plus ``name.bias`` where there is one."""
        columns = x.shape[-1]
        assert isinstance(columns, int)  # sizes of networks are numbers
        matrix = x.with_outlet(self.matrix(f"{name}.weight", rows, columns))
        product = EinSum(AxesMapping.parse("bsk,nk->bsn"), DatumType.F32)
        found = wire_one(self._model, self._model.unique_name(name), product, x.outlet, matrix.outlet)
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

    def _stored(self, name: str, shape: Sequence[int]) -> Array | Blocks:
        found = self.sizes(name)
        if found != tuple(shape):
            raise CorruptModel(f"the tensor {name!r:.80} has shape {list(found)}, wanted {list(shape)}")
        self._read.add(name)
        held = self._file.tensors[name].stored()
        if not isinstance(held, Blocks) and not DatumType.from_numpy(held.dtype).is_float():
            raise Unsupported(f"the tensor {name!r:.80} has elements of {held.dtype}, wanted floats")
        return held

    def _matrix(self, name: str, shape: tuple[int, int]) -> OutletId:
        held = self._stored(name, shape)
        if not isinstance(held, Blocks):
            form = FORMATS.get(DatumType.from_numpy(held.dtype).short)
            if form is None:
                return self._model.add_const(name, held.astype(np.float32, copy=False))
            held = Blocks(form, shape, held.reshape(-1).view(np.uint8))
        form = held.format
        packed = held.content.reshape(shape[0], shape[1] // form.length, form.size)
        blocks = self._model.add_const(f"{name}.blocks", packed)
        return wire_one(self._model, name, UnpackBlocks(form.name), blocks)


def _is_left_out(name: str) -> bool:
    return any(part in name for part in _LEFT_OUT)
