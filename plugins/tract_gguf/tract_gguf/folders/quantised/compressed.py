"""The formats of compressed-tensors: integers in words, integers and floats of 8 bits, MXFP4.

``weight_packed`` [N, ceil(K * B / 32)] has integers of B bits, each plus half of their range, in words along K, the
lowest bits first; ``weight_shape`` is [N,K]; ``weight_zero_point`` has them in words along N: [ceil(N * B / 32), G].
Where integers take 8 bits of their own, or floats do, ``weight`` and ``weight_zero_point`` are as they are.
``weight_scale`` has one for all, for each row, for each group of columns, or for each block. ``weight_g_idx`` [K] is
the group of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

import numpy as np

from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_gguf.folders.quantised.fp8 import NARROW, scaled
from tract_gguf.folders.quantised.integers import TYPES, WIDTHS, in_type, unpacked, words_for
from tract_gguf.folders.quantised.module import FLOATS, Module, Settings, elements, for_rows, ordered, zeros_like
from tract_gguf.folders.quantised.mxfp4 import in_blocks
from tract_gguf.reading.quantised import Quantised, QuantisedTensor

PARTS: Final = (
    "weight_packed",
    "weight_shape",
    "weight_scale",
    "weight_zero_point",
    "weight_g_idx",
    "weight_global_scale",
    "weight",
)

_FORMATS: Final = (
    "pack-quantized",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "mxfp4-pack-quantized",
    "mixed-precision",
    "dense",
)


@frozen
class Arguments:
    """How weights of a group of layers were quantised. ``kind``: to integers, ``int``, or to ``float``.

    ``bits``: of each; ``symmetric``: whether the middle of the range stands for 0, for all. ``each``: how many rows and
    columns share a scale, -1 for all.
    """

    kind: str
    bits: int
    symmetric: bool
    each: tuple[int, int]

    def sizes(self, rows: int, columns: int) -> tuple[int, int]:
        """Rows and columns that share a scale, of a matrix of so many."""
        first, second = (
            size if one == -1 else min(one, size) for one, size in zip(self.each, (rows, columns), strict=True)
        )
        return first, second


def compressed(settings: Settings, module: Module) -> QuantisedTensor:
    """The matrix of a module. Raises ModelError."""
    known = _arguments(settings)
    if "weight_packed" not in module.parts:
        return _plain(module, known)
    if module.parts["weight_packed"].kind == "u8":
        return _mxfp4(module)
    return _packed(module, known)


def _arguments(settings: Settings) -> Sequence[Arguments]:
    """Of all groups of layers. Raises ModelError."""
    settings.one_of("format", _FORMATS, "mixed-precision")
    groups = settings.inside("config_groups")
    if len(groups.said) > _MOST_GROUPS:
        raise LimitExceeded(f"config.json has {len(groups.said)} {groups.where}, {_MOST_GROUPS} are allowed")
    found = list[Arguments]()
    for name in groups.said:
        group = groups.inside(name)
        group.one_of("format", _FORMATS, "mixed-precision")
        if group.said.get("weights") is not None:
            found.append(_of_group(group.inside("weights")))
    return list(dict.fromkeys(found))


_MOST_GROUPS: Final = 256
"""Groups of layers that are quantised alike; there are one or two."""


def _of_group(said: Settings) -> Arguments:
    kind = said.one_of("type", ("int", "float"), "int")
    size = said.integer("group_size", 0)
    strategy = "group" if size > 0 else "channel" if size == -1 else "tensor"
    strategy = said.one_of("strategy", ("tensor", "channel", "group", "block"), strategy)
    each = {"tensor": (-1, -1), "channel": (1, -1), "group": (1, size)}.get(strategy) or said.pair("block_structure")
    if each is None or 0 in each or min(each) < -1:
        raise said.wrong("block_structure" if each is None else "group_size", f"the sizes of a {strategy}")
    return Arguments(kind, said.integer("num_bits", 8), said.truth("symmetric", default=True), each)


def _one(module: Module, known: Sequence[Arguments], fits: Callable[[Arguments], bool]) -> Arguments:
    """The one of them that fits the sizes of tensors. Raises CorruptModel for none, Unsupported for several."""
    found = [one for one in known if fits(one)]
    if len(found) == 1:
        return found[0]
    where = f"tensor {f'{module.name}.weight'!r:.200}"
    if not found:
        sizes = ", ".join(f"{name} {list(one.shape)}" for name, one in module.parts.items())
        raise CorruptModel(f"nothing of quantization_config.config_groups fits its parts: {sizes}", where=where)
    raise Unsupported("several of quantization_config.config_groups fit its parts, and differ", where=where)


def _fits_scales(module: Module, one: Arguments, rows: int, columns: int) -> bool:
    """Whether there are as many scales as the arguments say."""
    first, second = one.sizes(rows, columns)
    shape = module.part("weight_scale", FLOATS).shape
    return int(np.prod(shape, dtype=object)) == ceil(rows / first) * ceil(columns / second)


def _plain(module: Module, known: Sequence[Arguments]) -> QuantisedTensor:
    """Codes of 8 bits, in place."""
    weight = module.matrix("weight", ("i8", *NARROW))
    rows, columns = weight.shape
    kind = "int" if weight.kind == "i8" else "float"
    used = _one(module, known, lambda one: one.kind == kind and _fits_scales(module, one, rows, columns))
    each = used.sizes(rows, columns)
    if kind == "float" or (used.symmetric and "weight_zero_point" not in module.parts):
        return scaled(module, f"{kind}-quantized", (weight.kind,), "weight_scale", each)
    scale = for_rows(module, "weight_scale", (rows, columns), each)
    zero = for_rows(module, "weight_zero_point", (rows, columns), each, ("i8",))

    def make() -> Quantised:
        return Quantised(elements(weight), scale(), zero(), each[1]).in_whole_blocks()

    return module.tensor("int-quantized", (rows, columns), make)


def _packed(module: Module, known: Sequence[Arguments]) -> QuantisedTensor:
    """Integers that share words."""
    words = module.matrix("weight_packed", ("i32",))
    rows, columns = _shape(module)

    def fits(one: Arguments) -> bool:
        here = one.kind == "int" and one.bits in WIDTHS and words.shape == (rows, words_for(columns, one.bits))
        return here and _fits_scales(module, one, rows, columns)

    used = _one(module, known, fits)
    bits, each = used.bits, used.sizes(rows, columns)
    scale = for_rows(module, "weight_scale", (rows, columns), each)
    zero = _zeros(module, used, rows, columns)
    groups = module.part("weight_g_idx", ("i32",), (columns,)) if "weight_g_idx" in module.parts else None

    def make() -> Quantised:
        held = elements(words)
        order = None if groups is None else ordered(groups, columns, each[1])
        codes = unpacked(held, bits, columns)
        codes = in_type(codes if order is None else codes[:, order], bits, held)
        scales = scale()
        middle = zeros_like(codes, scales, 1 << (bits - 1)) if zero is None else zero()
        return Quantised(codes, scales, middle, each[1], order).in_whole_blocks()

    return module.tensor("pack-quantized", (rows, columns), make)


def _shape(module: Module) -> tuple[int, int]:
    """The sizes of the matrix, which words alone do not say."""
    said = module.part("weight_shape", ("i32", "i64"), (2,))
    rows, columns = (int(one) for one in elements(said))
    if not (0 < rows < 1 << 31 and 0 < columns < 1 << 31):
        raise module.wrong(said, f"sizes are {rows} and {columns}, wanted two above 0")
    return rows, columns


def _zeros(module: Module, used: Arguments, rows: int, columns: int) -> Callable[[], Array] | None:
    """What gives the zero of every row and group, [N,G]; ``None`` where it is the middle of the range."""
    if used.symmetric and "weight_zero_point" not in module.parts:
        return None
    groups = ceil(columns / used.sizes(rows, columns)[1])
    if used.sizes(rows, columns)[0] != 1:
        raise Unsupported("zeros of groups of rows are not read", where=f"tensor {f'{module.name}.weight'!r:.200}")
    words = module.part("weight_zero_point", ("i32",), (words_for(rows, used.bits), groups))

    def make() -> Array:
        return np.ascontiguousarray(unpacked(elements(words).T, used.bits, rows).T).view(TYPES[used.bits].numpy)

    return make


def _mxfp4(module: Module) -> QuantisedTensor:
    """Floats of 4 bits, two in a byte: [N, K / 2], with a scale for 32."""
    if "weight_global_scale" in module.parts:
        raise Unsupported("NVFP4 is not read", where=f"tensor {f'{module.name}.weight'!r:.200}")
    packed = module.matrix("weight_packed", ("u8",))
    rows, halves = packed.shape
    if halves % 16:
        raise module.wrong(packed, f"shape is {list(packed.shape)}, wanted whole blocks of 16 bytes")
    scale = module.part("weight_scale", ("u8", "f8e8m0fnu"), (rows, halves // 16))
    return in_blocks(module, packed, scale, (rows, halves * 2))
