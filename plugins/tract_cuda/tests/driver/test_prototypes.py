"""The table of the driver's functions against NVIDIA's header, where a package has brought it."""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tract_cuda.driver.prototypes import PROTOTYPES

pytestmark = pytest.mark.nvcc

NUMBERS: dict[str, Any] = {
    "unsigned int": c.c_uint,
    "size_t": c.c_size_t,
    "int": c.c_int,
    "CUdevice": c.c_int,
    "CUdeviceptr": c.c_uint64,
    "unsigned char": c.c_ubyte,
    "unsigned long long": c.c_ulonglong,
    "cuuint64_t": c.c_uint64,
}
HANDLES = {"CUcontext", "CUevent", "CUfunction", "CUgraph", "CUgraphExec", "CUmodule", "CUstream"}
"""Types that are pointers; all other names that begin with CU are enumerations."""


def headers() -> Iterator[Path]:
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from sorted(Path(place).glob("*/include/cuda.h"))


@cache
def header() -> str:
    found = next(headers(), None)
    if found is None:
        pytest.skip("no package here has cuda.h: nvidia-cuda-runtime brings it")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", found.read_text(), flags=re.S)


@cache
def renamed() -> dict[str, str]:
    """What programs write, by the name that the compiler then calls."""
    pairs = re.findall(r"#define\s+(cu\w+)\s+(?:__CUDA_API_PT[DS][SZ]\()?(cu\w+)", header())
    return {called: written for written, called in pairs}


def declared(name: str) -> list[str]:
    """The parameters of a function, as the header has them."""
    written = renamed().get(name, re.sub(r"_v\d$", "", name))
    found = re.search(rf"CUresult\s+CUDAAPI\s+{written}\s*\(([^;]*?)\)\s*;", header())
    assert found is not None, f"{written} is not in the header"
    return [one.strip() for one in found[1].split(",")]


def kind(parameter: str) -> Any:
    """The type of ctypes for a parameter of C; a text may stand where a pointer does."""
    if "*" in parameter:
        return c.c_void_p
    name = re.sub(r"\s*\w+$", "", parameter.replace("const ", ""))
    if name in HANDLES:
        return c.c_void_p
    return NUMBERS[name] if not name.startswith("CU") or name in NUMBERS else c.c_int


@pytest.mark.parametrize("name", PROTOTYPES)
def test_types_are_those_of_the_header(name: str) -> None:
    given = [c.c_void_p if one is c.c_char_p else one for one in PROTOTYPES[name]]
    assert given == [kind(one) for one in declared(name)]


OLDER = {"cuEventElapsedTime"}
"""Functions whose first layout is called: drivers before 12.8 have no other."""


@pytest.mark.parametrize("name", PROTOTYPES)
def test_a_name_is_the_one_that_the_header_calls(name: str) -> None:
    written = {one for one in (name, re.sub(r"_v\d$", "", name)) if one in renamed().values()}
    assert name in renamed() or name in OLDER or not written


def test_a_name_that_is_not_there_is_seen() -> None:
    with pytest.raises(AssertionError, match="cuFlyToTheMoon is not in the header"):
        declared("cuFlyToTheMoon")
