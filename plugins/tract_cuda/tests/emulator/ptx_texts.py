"""PTX of a few lines, and its run on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tract_cuda.testing.emulator import Emulator, Range, aligned

Array = NDArray[Any]
WARP = 32
HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>;
.reg .b16 %h<40>;
.reg .b32 %r<300>;
.reg .b64 %d<40>;
"""


def kernel(code: str, parameters: int = 4, before: str = "", shared: int = 0) -> str:
    """A kernel named k, of addresses %d0, %d1, ... With ``shared``, it has so many bytes named s."""
    listed = ", ".join(f".param .u64 p{number}" for number in range(parameters))
    loads = "\n".join(f"ld.param.u64 %d{number}, [p{number}];" for number in range(parameters))
    memory = f".shared .align 128 .b8 s[{shared}];" if shared else ""
    body = f"{REGISTERS}{memory}\n{loads}\nmov.u32 %r0, %tid.x;\n{code}\nret;"
    return f"{HEAD}{before}.visible .entry k({listed})\n{{\n{body}\n}}\n"


def launch(
    text: str,
    arrays: Sequence[Array],
    threads: int | Sequence[int] = WARP,
    grid: int | Sequence[int] = 1,
    *,
    shared: int = 0,
    written: Sequence[int] = (),
    raced: bool = False,
    **options: Any,
) -> list[Array]:
    """The arrays after the kernel ran. ``written``: which of them nobody wrote before; ``raced``: look for races."""
    emulator = Emulator(text)
    copies = [aligned(one) for one in arrays]
    memory = [
        Range(
            one.ctypes.data,
            one.nbytes,
            written=np.zeros(one.nbytes, np.uint8) if number in written else None,
            raced=raced,
        )
        for number, one in enumerate(copies)
    ]
    places = [one.ctypes.data for one in copies]
    block = (threads,) if isinstance(threads, int) else threads
    sizes = (grid,) if isinstance(grid, int) else grid
    emulator.launch("k", sizes, block, shared, places, memory=memory, **options)
    return copies


def _bits(array: Array) -> int:
    return 8 * array.dtype.itemsize


def elementwise(code: str, result: Any, *arrays: Array, **options: Any) -> Array:
    """What an instruction gives for each element: ``$a``, ``$b``, ``$c`` are its operands, ``$y`` its result."""
    names = dict(zip("abcd", arrays, strict=False))
    dtype = np.dtype(result)
    lines = [f".reg .b{max(_bits(one), 16)} %{name};" for name, one in names.items()]
    lines.append(f".reg .b{max(8 * dtype.itemsize, 16)} %y;")
    for number, (name, one) in enumerate(names.items()):
        lines.append(f"mad.wide.u32 %d20, %r0, {one.dtype.itemsize}, %d{number};")
        lines.append(f"ld.global.b{_bits(one)} %{name}, [%d20];")
    lines.append(code.replace("$", "%"))
    lines.append(f"mad.wide.u32 %d20, %r0, {dtype.itemsize}, %d{len(arrays)};")
    lines.append(f"st.global.b{8 * dtype.itemsize} [%d20], %y;")
    count = len(arrays[0])
    text = kernel("\n".join(lines), len(arrays) + 1)
    return launch(text, [*arrays, np.zeros(count, dtype)], count, **options)[-1]
