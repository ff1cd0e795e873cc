"""Models whose machine code lies beside them in an archive: from a file to results without any analysis.

`load_compiled` imports little, and no compiler: the code is linked by `tract_llvm.objects.linker`, and the constants
are mapped from the archive, so that processes share them. Such code does whatever who wrote it wanted, with all that
this process may do: nothing of it is looked at before the caller says that it is trusted.

In the folder `compiled` of an archive are object files, the constants of each, and an index in JSON, which says what
the model takes and gives, what each code needs of a machine, and the digests of all files.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from tract_llvm.objects.linker import linked
from tract_llvm.objects.relocations import CannotLink
from tract_llvm.processor import features

from tract_core.digests import blake2b
from tract_core.errors import CorruptModel, InputError, LimitExceeded, MissingFile, RunError, TractError, Unsupported
from tract_core.machine import architecture
from tract_cpu.ahead.alone import Arrays, ObjectFunctions, StandaloneModel

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

FOLDER: Final = "compiled"
INDEX: Final = "index.json"
FORMAT: Final = "tract compiled 1"
NAME: Final = "model"
"""With which the functions of code begin."""

ALIGNMENT: Final = 64
"""Bytes: that of `tract_cpu.aligned`, which imports more than most archives need."""

_MOST: Final = 1 << 62
"""Bytes that nothing has."""

_BLOCK: Final = 512
"""Bytes of a header of a tar, and what files in it are padded to."""

Files = Mapping[str, memoryview]
"""The content of the files below `FOLDER`, by name."""


class CompiledCode(NamedTuple):
    """Code for one kind of machine, as the index has it.

    ``instructions``: the name of its instruction set; ``architecture``, ``system``, ``needs``: what it runs on.
    ``memory``: bytes that a run works in; ``keeps``: whether anything stays from run to run. ``files``: the object and
    the constants, each with its digest.
    """

    instructions: str
    architecture: str
    needs: tuple[str, ...]
    system: str
    memory: int
    keeps: bool
    files: Mapping[str, str]

    def why_not(self) -> str | None:
        """Why it does not run here; ``None`` where it does."""
        if (self.architecture, self.system) != (architecture(), sys.platform):
            return f"it is for {self.architecture} and {self.system}"
        has: Mapping[str, bool] = features() if self.needs else {}
        missing = [one for one in self.needs if not has.get(one)]
        return f"this processor lacks {', '.join(missing)}" if missing else None


class Compiled(NamedTuple):
    """What machine code an archive brings. ``digest``: of the index, by which it can be trusted."""

    digest: str
    inputs: Arrays
    outputs: Arrays
    codes: tuple[CompiledCode, ...]


class ArchivedModel(StandaloneModel):
    """A model out of an archive, with memory of its own, in which one thread at a time runs it.

    What does not fit is an `InputError`, a run that fails a `RunError`.
    """

    def another(self) -> ArchivedModel:
        """The same model with memory of its own, for another thread or another stream."""
        return ArchivedModel(self._code)

    def _refusal(self, kind: type[Exception], problem: str) -> TractError:
        return RunError(problem) if kind in {IndexError, RuntimeError} else InputError(problem)


def load_compiled(path: str | os.PathLike[str], *, trust: bool | str = False) -> ArchivedModel:
    """The model whose machine code is in an archive: a ``.tar`` or a folder, as ``tract cook --compiled`` writes it.

    ``trust``: that digest of the archive, as ``tract compiled FILE`` shows it, with which all its files are compared;
    or ``True`` for one that nobody but you can have written: then its constants are not read before they are used.
    Raises InputError without trust, for another digest, and for an archive without code; Unsupported where none of the
    code is for this machine, CorruptModel, MissingFile, LimitExceeded for more memory than there is.
    """
    name = os.fspath(path)
    try:
        files = _files(name)
        if trust is not True:
            _check_digest(files, trust)
        found = _compiled(files)
        code = _chosen(found)
        return ArchivedModel(_ready(found, code, files, whole=trust is not True))
    except (MemoryError, OverflowError) as error:
        raise LimitExceeded("a run of it wants more memory than there is", where=name) from error
    except TractError as error:
        raise error.at(name) from error.__cause__


def compiled_in(path: str | os.PathLike[str]) -> Compiled:
    """What machine code an archive brings, without using it. Raises as `load_compiled`."""
    name = os.fspath(path)
    try:
        return _compiled(_files(name))
    except TractError as error:
        raise error.at(name) from error.__cause__


def digest_of_bytes(pieces: Iterable[Any]) -> str:
    """That of the content of a file, given in pieces."""
    digest = blake2b(digest_size=20)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _check_digest(files: Files, trust: Any) -> None:
    found = digest_of_bytes([files[INDEX]])
    if trust is False:
        problem = "its machine code does what who wrote it wanted, and nobody said that it is to be trusted"
        raise InputError(problem, hint=f"trust={found!r}, if that is the digest that you expect; or load the model")
    if trust != found:
        raise InputError(f"the digest of its machine code is {found}, and {trust!r} is trusted", hint="get it anew")


def _compiled(files: Files) -> Compiled:
    try:
        said = json.loads(bytes(files[INDEX]))
        if said["format"] != FORMAT:
            problem = f"its machine code is in the format {said['format']!r:.40}, and {FORMAT!r} is known here"
            raise Unsupported(problem, hint="write it anew, or load the model")
        codes = tuple(map(_code, said["codes"]))
        inputs, outputs = (_arrays(said[key]) for key in ("inputs", "outputs"))
    except (ValueError, TypeError, KeyError, RecursionError) as damage:
        raise _corrupt(f"{INDEX} is damaged: {damage}") from damage
    return Compiled(digest_of_bytes([files[INDEX]]), inputs, outputs, codes)


def _code(said: Any) -> CompiledCode:
    texts = (said["instructions"], said["architecture"], tuple(map(str, said["needs"])), said["system"])
    return CompiledCode(*texts, _count(said["memory"]), bool(said["keeps"]), {**said["files"]})


def _arrays(said: Any) -> Arrays:
    return {str(name): (tuple(map(_count, shape)), str(kind)) for name, shape, kind in said}


def _count(said: Any) -> int:
    if not isinstance(said, int) or not 0 <= said < _MOST:
        raise ValueError(f"{said!r:.20} is no number of bytes or elements")
    return said


def _chosen(found: Compiled) -> CompiledCode:
    """The best code for this machine: the last that runs here."""
    reasons = [code.why_not() for code in found.codes]
    fitting = [code for code, reason in zip(found.codes, reasons, strict=True) if reason is None]
    if not fitting:
        pairs = zip(found.codes, reasons, strict=True)
        listed = "; ".join(f"{code.instructions}: {reason}" for code, reason in pairs) or "there is none"
        raise Unsupported(f"no machine code in it is for this machine: {listed}", hint="load the model: tract.load")
    return fitting[-1]


def _ready(found: Compiled, code: CompiledCode, files: Files, *, whole: bool) -> ObjectFunctions:
    """``whole``: whether constants are compared with their digest, too, as the code is."""
    (object_name, code_digest), (constants_name, constants_digest) = code.files.items()
    content, constants = bytes(_file(files, object_name)), np.frombuffer(_file(files, constants_name), np.uint8)
    _check_whole(object_name, content, code_digest)
    if whole:
        _check_whole(constants_name, constants, constants_digest)
    try:
        start, run = linked([(f"{NAME}_{what}", content) for what in ("start", "run")])
    except CannotLink as problem:
        raise Unsupported(f"its machine code cannot be used: {problem}", hint="load the model: tract.load") from problem
    constants = _aligned(constants)
    pointer = ctypes.c_void_p
    begin: Any = ctypes.CFUNCTYPE(None, pointer, pointer)(start.address)
    arrays = len(found.inputs) + len(found.outputs)
    call: Any = ctypes.CFUNCTYPE(ctypes.c_int32, *[pointer] * (1 + arrays))(run.address)
    place = constants.ctypes.data
    inputs, outputs = _with_types(found.inputs), _with_types(found.outputs)
    held = (start, run, constants)

    def begun(memory: int) -> None:
        begin(memory, place)

    return ObjectFunctions(begun, call, code.memory, ALIGNMENT, inputs, outputs, code.keeps, held)


def _aligned(constants: Array) -> Array:
    """The same bytes where vectors may be read: where they lie, in archives that we wrote."""
    if constants.ctypes.data % ALIGNMENT == 0:
        return constants
    from tract_cpu.aligned import aligned

    found = aligned(np.empty, constants.shape, constants.dtype)
    found[:] = constants
    return found


def _with_types(arrays: Arrays) -> Arrays:
    return {name: (shape, _type(kind)) for name, (shape, kind) in arrays.items()}


def _type(kind: str) -> Any:
    try:
        return np.dtype(kind).name
    except TypeError:  # NumPy alone has no bf16
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, kind))


def _check_whole(name: str, content: Any, wanted: str) -> None:
    if digest_of_bytes([content]) != wanted:
        raise _corrupt(f"{name} is damaged")


def _file(files: Files, name: str) -> memoryview:
    if name not in files:
        raise _corrupt(f"{name} is missing")
    return files[name]


def _files(path: str) -> Files:
    """The files beside the model, mapped. Raises InputError where there are none."""
    try:
        is_folder = S_ISDIR(os.stat(path).st_mode)
        found = _of_folder(os.path.join(path, FOLDER)) if is_folder else _of_tar(_mapped(path))
    except FileNotFoundError as error:
        raise MissingFile("there is no such file") from error
    except (OSError, ValueError) as error:
        raise _corrupt(f"it cannot be read: {error}") from error
    if INDEX not in found:
        hint = "'tract MODEL cook --compiled' writes it, into a .nnef.tar or a folder"
        raise InputError("there is no machine code in it", hint=hint)
    return found


def _of_folder(path: str) -> Files:
    names = os.listdir(path) if os.path.isdir(path) else []
    return {name: _mapped(os.path.join(path, name)) for name in names}


def _mapped(path: str) -> memoryview:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _of_tar(content: memoryview) -> Files:
    """The files below `FOLDER` in a tar. Raises ValueError where it is damaged.

    Source: POSIX, ``pax``, "ustar Interchange Format"; GNU has sizes beyond 8 GiB in base 256.
    """
    found: dict[str, memoryview] = {}
    place, above = 0, f"{FOLDER}/"
    while place + _BLOCK <= len(content) and content[place]:
        head = bytes(content[place : place + _BLOCK])
        if head[257:262] != b"ustar":
            raise InputError("it is no tar", hint="write a .nnef.tar, or a folder")
        name = head[:100].rstrip(b"\0").decode(errors="replace").removeprefix("./")
        size = int.from_bytes(head[125:136]) if head[124] & 0x80 else int(head[124:136].rstrip(b"\0 ") or b"0", 8)
        begin, place = place + _BLOCK, place + _BLOCK + -(-size // _BLOCK) * _BLOCK
        if name.startswith(above):
            found[name.removeprefix(above)] = content[begin : begin + size]
    return found


def _corrupt(problem: str) -> CorruptModel:
    return CorruptModel(problem, hint="write the archive anew, or load the model: tract.load")
