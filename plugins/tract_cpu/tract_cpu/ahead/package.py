"""A compiled model as a package of Python, in a wheel: one shared library, and a module that needs NumPy alone.

The names of wheels, and what is in them, are those of the "Binary distribution format" of PyPA.
"""

from __future__ import annotations

import io
import re
import sysconfig
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from tract_llvm.processor import FAST_BF16

from tract_core.dims import is_symbolic, linear_in_one_symbol
from tract_core.errors import InputError, Unsupported
from tract_core.model.fact import TypedFact
from tract_cpu.ahead import alone
from tract_cpu.ahead.glue import function_names
from tract_cpu.ahead.object_file import CompiledModel, refuse_open
from tract_cpu.ahead.targets import ObjectTarget
from tract_cpu.aligned import ALIGNMENT

ENDING: Final = ".whl"

_LIBRARY: Final = "model.so"

_WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""The time of all files in a wheel, so that the same model gives the same bytes: the first that an archive can tell."""

_ALONE: Final = "_model.py"
"""The copy of `tract_cpu.ahead.alone`."""

_MODULE: Final = '''\
"""@NAME@: a model, compiled by tract. It needs NumPy, and a processor with @PROCESSOR@."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import local
from typing import Any

import numpy as np

from @NAME@._model import ObjectFunctions as _ObjectFunctions
from @NAME@._model import StandaloneModel as _StandaloneModel
from @NAME@._model import ToldSizes as _ToldSizes

INPUTS: dict[str, tuple[tuple[int | str, ...], str]] = @INPUTS@
"""The shapes and the types of the inputs, in order. Open sizes are texts."""
OUTPUTS: dict[str, tuple[tuple[int | str, ...], str]] = @OUTPUTS@
"""The shapes and the types of the outputs, in order."""

_NEEDS = @NEEDS@


def _check_processor() -> None:
    if not _NEEDS or not sys.platform.startswith("linux"):
        return
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = next((line for line in file if line.startswith("flags")), "").replace("_", "").split()
    missing = [one for one in _NEEDS if one not in found]
    if missing:
        raise ImportError(f"@NAME@ was compiled for another processor: this one lacks {', '.join(missing)}")


_check_processor()
_library = ctypes.CDLL(str(Path(__file__).with_name("@LIBRARY@")))
_start, _run = _library.@START@, _library.@RUN@
_start.argtypes, _start.restype = [ctypes.c_void_p], None
_sizes = [ctypes.c_int64] * @COUNT@
_run.argtypes = [ctypes.c_void_p, *_sizes, *[ctypes.c_void_p] * (len(INPUTS) + len(OUTPUTS))]
_run.restype = ctypes.c_int32
_told = None
if _sizes:
    _memory, _shapes = _library.@NAME@_memory, _library.@NAME@_shapes
    _memory.argtypes, _memory.restype = _sizes, ctypes.c_int64
    _shapes.argtypes, _shapes.restype = [*_sizes, ctypes.c_void_p], ctypes.c_int32
    _told = _ToldSizes(_memory, _shapes, @FOUND@)
_code = _ObjectFunctions(_start, _run, @MEMORY@, @ALIGNMENT@, INPUTS, OUTPUTS, @KEEPS@, None, _told)


class Model(_StandaloneModel):
    """The model with memory of its own, in which one thread at a time runs it."""

    def __init__(self) -> None:
        super().__init__(_code)


_here = local()


def run(inputs: Sequence[Any] | Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs of one run, as `Model.run` gives them; each thread has a model of its own, which keeps nothing."""
    model = getattr(_here, "model", None)
    if model is None:
        model = _here.model = Model()
    elif _code.keeps:
        model.reset()
    return model.run(inputs)
'''

_METADATA: Final = """\
Metadata-Version: 2.1
Name: @DISTRIBUTION@
Version: @VERSION@
Summary: A model, compiled by tract
Requires-Python: >=3.10
Requires-Dist: numpy>=1.24
"""

_WHEEL: Final = """\
Wheel-Version: 1.0
Generator: tract-cpu
Root-Is-Purelib: false
Tag: @TAG@
"""


def wheel_name(path: Path) -> tuple[str, str, str]:
    """The name of the package, its version and the name of the file, of a wheel that is called as in ``path``.

    ``digits.whl`` and ``digits-2.1.whl`` are completed, with version 1.0 where there is none. Raises InputError.
    """
    parts = path.name.removesuffix(ENDING).split("-")
    name, version = re.sub(r"[^A-Za-z0-9]+", "_", parts[0]).strip("_").lower(), (*parts[1:2], "1.0")[0]
    if not name.isidentifier() or not re.fullmatch(r"[0-9]+(\.[0-9]+)*([abc.+a-z0-9]*)", version) or len(parts) > 5:
        hint = "as digits.whl, or digits-2.1.whl"
        raise InputError(f"{path.name!r} names no package of Python", hint=hint)
    return name, version, f"{name}-{version}-{_tag()}{ENDING}"


def _tag() -> str:
    return f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def wheel(found: CompiledModel, library: bytes, target: ObjectTarget, name: str, version: str) -> bytes:
    """The content of the wheel of a model. ``library``: it, linked for this machine."""
    told = f"{name}-{version}.dist-info"
    metadata = {"@DISTRIBUTION@": name, "@VERSION@": version, "@TAG@": _tag()}
    files: dict[str, bytes] = {
        f"{name}/__init__.py": _module(found, target).encode(),
        f"{name}/{_ALONE}": Path(alone.__file__).read_bytes(),
        f"{name}/py.typed": b"",
        f"{name}/{_LIBRARY}": library,
        f"{told}/METADATA": _filled(_METADATA, metadata).encode(),
        f"{told}/WHEEL": _filled(_WHEEL, metadata).encode(),
    }
    record = f"{told}/RECORD"
    lines = [f"{one},sha256={_digest(content)},{len(content)}\n" for one, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for one, content in files.items():
            entry = zipfile.ZipInfo(one, _WHEN)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            opened.writestr(entry, content)
    return archive.getvalue()


def _module(found: CompiledModel, target: ObjectTarget) -> str:
    names = function_names(found.name)
    arrays = [(name, _told(name, fact)) for name, fact in found.arrays]
    needs = tuple(one.replace("-", "").replace("_", "") for one in target.isa.needs if one != FAST_BF16)
    return _filled(
        _MODULE,
        {
            "@NAME@": found.name,
            "@PROCESSOR@": target.isa.name,
            "@INPUTS@": repr(dict(arrays[: found.inputs])),
            "@OUTPUTS@": repr(dict(arrays[found.inputs :])),
            "@NEEDS@": repr(needs if target.isa.architecture == "x86_64" else ()),
            "@MEMORY@": str(found.memory),
            "@ALIGNMENT@": str(ALIGNMENT),
            "@LIBRARY@": _LIBRARY,
            "@START@": names["start"],
            "@RUN@": names["run"],
            "@KEEPS@": str(bool(found.kept)),
            "@COUNT@": str(len(found.sizes)),
            "@FOUND@": repr(tuple(_tells(found, name) for name in found.sizes)),
        },
    )


def _tells(found: CompiledModel, name: str) -> tuple[int, int, int, int]:
    """Which input tells an open size, by which axis, what that has as a factor, and what is added.

    Raises Unsupported where none does, and where something stays from run to run: memory grows with sizes.
    """
    if found.kept:
        refuse_open(found.sizes)
    for number, (_, fact) in enumerate(found.arrays[: found.inputs]):
        for axis, size in enumerate(fact.shape):
            if (told := linear_in_one_symbol(size)) is not None and told[0] == name:
                return number, axis, *told[1:]
    hint = f"fix it: --set {name}=..., or write an object file"
    raise Unsupported(f"no axis of an input alone tells how large {name} is", hint=hint)


def _told(name: str, fact: TypedFact) -> tuple[tuple[int | str, ...], str]:
    """The shape, and the type of NumPy, of an input or output. Raises Unsupported where NumPy alone has none."""
    kind = fact.datum_type.storage.numpy
    if not kind.isbuiltin:
        hint = "cast it in the model, or write an object file"
        raise Unsupported(f"{name!r} is of type {fact.datum_type.short}, which NumPy alone does not have", hint=hint)
    return tuple(str(size) if is_symbolic(size) else int(size) for size in fact.shape), kind.name


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub("|".join(values), lambda found: values[found[0]], text)


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
