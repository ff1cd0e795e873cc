"""``.pt2`` files, which `torch.export.save` writes: a ZIP archive of a graph in JSON and of tensors.

PyTorch unpickles parts of such a file, evaluates texts in it as expressions, writes names and guards into source that
it runs, imports what the structures of arguments name, and opens native libraries in it. So a file is looked through
before PyTorch sees it: it has the members that `torch.export.save` writes and no others; nothing in it may be pickled
but the example, which must hold tensors alone; expressions and guards may hold numbers, symbols and functions of sizes;
what is called must be operators, structures are tuples, lists and dictionaries, and names are words.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import torch

from tract_core.api.formats import missing_file
from tract_core.errors import CorruptModel, InputError, LimitExceeded, TractError, UnsafePath, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.lookalikes import HEAD, recognise
from tract_core.safe_files import check_size
from tract_torch.alone import alone

_TARGETS: Final = re.compile(r"torch\.ops(\.\w+){2,3}|_operator\.\w+|torch\.sym_\w+|math\.\w+")
_MODULES: Final = re.compile(r"\b(math\.|torch\.sym_)")
"""What guards call functions of numbers by: of newer PyTorch, ``torch.sym_max``."""
_FUNCTIONS: Final = re.compile(
    r"Symbol|Integer|Rational|Float|Add|Mul|Mod|PythonMod|FloorDiv|CleanDiv|CeilDiv|Max|Min|Where|Identity|And|Or|Not|"
    r"Eq|Ne|Ge|Gt|Le|Lt|Equality|Unequality|(Strict)?(GreaterThan|LessThan)|ToFloat|(Int|Float)TrueDiv|"
    r"(Ceil|Floor|Trunc|Round)To(Int|Float)|ModularIndexing|OpaqueUnaryFn_\w+|max|min|abs|int|float"
)
_POWERS: Final = ("Pow", "PowByNatural", "FloatPow")
_MOST: Final = 10_000
"""Characters of an expression."""
_GRAPH: Final = "models/model.json"
_MEMBERS: Final = re.compile(
    rf"{re.escape(_GRAPH)}|archive_(format|version)|byteorder|version|\.data/\w+|data/weights/weight_\d+|extra/.*|"
    r"data/constants/tensor_\d+|data/(weights/model_weights|constants/model_constants)_config\.json|"
    r"data/sample_inputs/model\.pt"
)
"""What `torch.export.save` writes: of other members PyTorch would open some as native libraries."""
_PAYLOAD: Final = re.compile(r"(weight|tensor)_\d+")
"""Members that are elements of tensors; by other names, PyTorch unpickles them."""
_NAME: Final = re.compile(r"[\w.+:/ -]*")
"""Names of tensors, parameters, arguments and types: they become part of source, so nothing in them is called."""
_FREE: Final = ("as_string", "as_strings")
"""Arguments of operators that are texts."""
_STRUCTURES: Final = (None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")
_SIZE_IN_GUARD: Final = re.compile(r"L(\['[\w ]*'\]|\[\d+\])+\.size\(\)\[\d+\]")
_END: Final = b"PK\5\6"
_END_SIZE: Final = 22
"""How the directory of a ZIP archive ends: these letters, sizes, and a comment, whose length is told in two bytes."""


def load_program(path: str | os.PathLike[str], limits: LoadLimits = DEFAULT_LIMITS) -> torch.export.ExportedProgram:
    """The program in a file. Raises ModelError, with the file's name, for one that is none, or has more in it."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError("it is a folder, wanted a file of torch.export.save")
        if not path.is_file():
            raise missing_file(path)
        check_size(path.stat().st_size, limits)
        _look_through(path, limits)
        return _program(path)
    except TractError as error:
        raise error.at(str(path)) from error.__cause__


def _program(path: Path) -> torch.export.ExportedProgram:
    try:
        with alone():
            return torch.export.load(path)
    except Exception as error:
        error.__traceback__ = error.__context__ = None
        text = " ".join(str(error).split())[:300]
        raise CorruptModel(f"PyTorch cannot read it: {type(error).__name__}: {text}") from error


def _look_through(path: Path, limits: LoadLimits) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            _check_end(path)
            _check_archive(archive, limits)
    except (zipfile.BadZipFile, ValueError, KeyError, RuntimeError, zlib.error, EOFError) as error:
        with path.open("rb") as file:
            known = recognise(file.read(HEAD), path.name)
        what = f"it is {known.what}" if known else str(error)
        hint = known.advice if known else "write it by torch.export.save"
        raise CorruptModel(f"is no file of torch.export.save: {what}", hint=hint) from None


def _check_end(path: Path) -> None:
    """Raises CorruptModel where there is something behind the archive, so that PyTorch may find another one in it."""
    with path.open("rb") as file:
        file.seek(-_END_SIZE, os.SEEK_END)
        end = file.read()
    if not end.startswith(_END) or end.count(_END) > 1 or end[-2:] != b"\0\0":
        raise CorruptModel("does not end with the directory of its members")


def _check_archive(archive: zipfile.ZipFile, limits: LoadLimits) -> None:
    """Raises ModelError for what is no exported program, and for what PyTorch would have to trust."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise CorruptModel("has two members of one name")
    if sum(member.file_size for member in members) > limits.max_bytes:
        raise LimitExceeded("its members have more bytes than are allowed", hint="LoadLimits(max_bytes=...)")
    unsafe = next((name for name in names if name.startswith(("/", "\\")) or ".." in name.split("/")), None)
    if unsafe is not None:
        raise UnsafePath(f"has a member {unsafe!r}")
    if len({name.partition("/")[0] for name in names}) > 1:
        raise CorruptModel("its members are in several folders, wanted one")
    inside = {name.partition("/")[2]: name for name in names}
    if _GRAPH not in inside:
        hint = "write it anew by torch.export.save, of PyTorch 2.9 or newer"
        raise Unsupported(f"has no member {_GRAPH}", hint=hint)
    other = next((name for name in inside if not _MEMBERS.fullmatch(name)), None)
    if other is not None:
        raise Unsupported(f"has a member {other!r}, which torch.export.save does not write")
    for name, member in inside.items():
        if name.endswith(".json"):
            _check_json(name, json.loads(archive.read(member)))
        elif name.startswith("data/sample_inputs/"):
            _check_example(archive.read(member))


def _check_json(name: str, content: Any) -> None:
    for key, value in _entries(content):
        if key == "use_pickle" and value:
            raise Unsupported(
                f"{name} has pickled tensors or objects, which can run any program",
                hint="save plain tensors: no subclasses, no script objects",
            )
        if key == "path_name" and not _PAYLOAD.fullmatch(str(value)):
            raise Unsupported(f"{name} has a tensor in the member {value!r}, which PyTorch would unpickle")
        if isinstance(value, str):
            _check_text(name, key, value)


def _entries(content: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """All keys and values, at any depth, but for metadata; items of lists with the key of the list."""
    if isinstance(content, dict):
        held = cast("Mapping[str, Any]", content)
        is_metadata = key == "metadata" and all(isinstance(value, str) for value in held.values())
        for name, value in held.items() if not is_metadata else ():
            yield "", name
            yield from _entries(value, name)
    elif isinstance(content, list):
        for value in cast("Sequence[Any]", content):
            yield from _entries(value, key)
    else:
        yield key, content


def _check_text(name: str, key: str, text: str) -> None:
    if key == "expr_str":
        _check_expression(text)
    elif key == "guards_code":
        _check_expression(_MODULES.sub("OpaqueUnaryFn_", _SIZE_IN_GUARD.sub("size", text)))
    elif key == "target":
        if not _TARGETS.fullmatch(text):
            raise Unsupported(f"{name} calls {text!r}, wanted an operator")
    elif key in {"in_spec", "out_spec"}:
        _check_structure(json.loads(text)[1])
    elif key not in _FREE and not _NAME.fullmatch(text):
        raise CorruptModel(f"{name} has the text {text[:60]!r}, wanted a name")


def _check_structure(spec: Any) -> None:
    """Raises Unsupported for the structure of arguments or results where it names what PyTorch would import."""
    if spec["type"] not in _STRUCTURES:
        hint = "give and return tensors in tuples, lists and dictionaries"
        raise Unsupported(f"its arguments or results are in a {spec['type']}", hint=hint)
    keys = json.loads(spec["context"] or "null")
    if not all(isinstance(one, int) or _NAME.fullmatch(str(one)) for one in keys or ()) or isinstance(keys, dict):
        raise CorruptModel(f"has the keys {spec['context'][:60]!r}, wanted names or numbers")
    for one in spec["children_spec"]:
        _check_structure(one)


def _check_expression(text: str) -> None:
    """Raises CorruptModel for a text that is more than an expression of sizes."""
    try:
        tree = ast.parse(text[:_MOST], mode="eval") if len(text) <= _MOST else None
    except (SyntaxError, ValueError):
        tree = None
    if tree is None or not all(_is_plain(node) for node in ast.walk(tree)):
        raise CorruptModel(f"has the expression {text[:60]!r}, wanted one of sizes")


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _POWERS:
            return len(node.args) == 2 and _is_small(node.args[1])
        return bool(_FUNCTIONS.fullmatch(name))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) or bool(re.fullmatch(r"\w+", str(node.value)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _is_small(node.right)
    if isinstance(node, ast.Name):
        return not node.id.startswith("_")
    return isinstance(node, _PLAIN)


def _is_small(node: ast.expr) -> bool:
    """Whether this is a small number, as an exponent must be: others would take for ever."""
    return bool(re.fullmatch(r"(Integer\()?-?\d{1,2}\)?|Rational\(-?\d, \d\)", ast.unparse(node)))


_PLAIN: Final = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.Load,
    ast.keyword,
)


def _check_example(content: bytes) -> None:
    try:
        if content:
            torch.load(io.BytesIO(content), weights_only=True)
    except Exception as error:
        error.__traceback__ = error.__context__ = None
        hint = "export the module with tensors, numbers and texts in lists, tuples and dictionaries as its example"
        raise Unsupported("its example holds pickled objects, which can run any program", hint=hint) from error
