"""``.pt2`` files, which `torch.export.save` writes: a ZIP archive of a graph in JSON and of tensors.

PyTorch unpickles parts of such a file, evaluates texts in it as expressions, and calls by name what the graph names.
So a file is looked through before PyTorch sees it: nothing in it may be pickled but the example, which must hold
tensors alone; expressions may hold numbers, symbols and functions of sizes; and what is called must be operators.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import torch

from tract_core.api.formats import missing_file
from tract_core.errors import CorruptModel, LimitExceeded, TractError, UnsafePath, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.lookalikes import HEAD, recognise
from tract_core.model.typed import TypedModel
from tract_core.safe_files import check_size

_TARGETS: Final = re.compile(r"torch\.ops(\.\w+){2,3}|_operator\.\w+|torch\.sym_\w+|math\.\w+")
_FUNCTIONS: Final = re.compile(
    r"Symbol|Integer|Rational|Float|Add|Mul|Mod|PythonMod|FloorDiv|CleanDiv|CeilDiv|Max|Min|Where|Identity|And|Or|Not|"
    r"Eq|Ne|Ge|Gt|Le|Lt|Equality|Unequality|(Strict)?(GreaterThan|LessThan)|ToFloat|(Int|Float)TrueDiv|"
    r"(Ceil|Floor|Trunc|Round)To(Int|Float)|ModularIndexing|OpaqueUnaryFn_\w+"
)
_POWERS: Final = ("Pow", "PowByNatural", "FloatPow")
_MOST: Final = 10_000
"""Characters of an expression."""


def load_program(path: str | os.PathLike[str], limits: LoadLimits = DEFAULT_LIMITS) -> torch.export.ExportedProgram:
    """The program in a file. Raises ModelError, with the file's name, for one that is none, or has more in it."""
    path = Path(path)
    try:
        if not path.is_file():
            raise missing_file(path)
        check_size(path.stat().st_size, limits)
        _look_through(path, limits)
        return _program(path)
    except TractError as error:
        raise error.at(str(path)) from error.__cause__


def _program(path: Path) -> torch.export.ExportedProgram:
    try:
        return torch.export.load(path)
    except Exception as error:
        error.__traceback__ = error.__context__ = None
        text = " ".join(str(error).split())[:300]
        raise CorruptModel(f"PyTorch cannot read it: {type(error).__name__}: {text}") from error


def _look_through(path: Path, limits: LoadLimits) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, limits)
    except (zipfile.BadZipFile, UnicodeDecodeError, json.JSONDecodeError, KeyError, RecursionError) as error:
        with path.open("rb") as file:
            known = recognise(file.read(HEAD), path.name)
        what = f"it is {known.what}" if known else str(error)
        hint = known.advice if known else "write it by torch.export.save"
        raise CorruptModel(f"is no file of torch.export.save: {what}", hint=hint) from None


def _check_archive(archive: zipfile.ZipFile, limits: LoadLimits) -> None:
    """Raises ModelError for what is no exported program, and for what PyTorch would have to trust."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise CorruptModel("has two members of one name")
    if sum(member.file_size for member in members) > limits.max_bytes:
        raise LimitExceeded("its members have more bytes than are allowed", hint="LoadLimits(max_bytes=...)")
    inside = {name.partition("/")[2]: name for name in names}
    unsafe = next((name for name in names if name.startswith(("/", "\\")) or ".." in name.split("/")), None)
    if unsafe is not None:
        raise UnsafePath(f"has a member {unsafe!r}")
    if "models/model.json" not in inside:
        hint = "write it anew by torch.export.save, of PyTorch 2.9 or newer"
        raise Unsupported("has no member models/model.json", hint=hint)
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
        if key == "expr_str" and isinstance(value, str):
            _check_expression(value)
        if key == "target" and isinstance(value, str) and not _TARGETS.fullmatch(value):
            raise Unsupported(f"{name} calls {value!r}, wanted an operator")


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    """All keys and values, at any depth."""
    if isinstance(content, dict):
        for key, value in cast("Mapping[str, Any]", content).items():
            yield key, value
            yield from _entries(value)
    elif isinstance(content, list):
        for value in cast("Sequence[Any]", content):
            yield from _entries(value)


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


class Pt2:
    """The format of ``.pt2`` files. ``limits``: what a file may ask for."""

    def __init__(self, *, limits: LoadLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits

    def load(self, path: str | os.PathLike[str]) -> TypedModel:
        """The model in a file, not simplified yet. Raises ModelError, with the file's name."""
        from tract_torch.loading import program_of  # which needs this module for files

        return program_of(load_program(path, self._limits)).model
