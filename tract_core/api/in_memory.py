"""Models that are in memory already: objects of other libraries, and files that the caller has opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tract_core.api.given import hint_for
from tract_core.errors import InputError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.plugins.descriptor import Format
from tract_core.safe_files import check_size


def content_of(given: Any, limits: LoadLimits | None) -> bytes | None:
    """What is still to be read of an opened file; None for anything else.

    Raises InputError for one that was opened as text, LimitExceeded for one of too many bytes.
    """
    if not hasattr(given, "read"):
        return None
    most, parts, size = limits or DEFAULT_LIMITS, list[bytes](), 0
    while part := given.read(_PIECE):
        if not isinstance(part, bytes):
            found = type(part).__name__
            raise InputError(f"the file gives {found}, wanted bytes", hint='open it as binary: open(path, "rb")')
        size += len(part)
        check_size(size, most)
        parts.append(part)
    return b"".join(parts)


_PIECE: Final = 1 << 24
"""Bytes that are read at once."""


def format_of_object(given: Any, format_name: str | None, formats: Mapping[str, Format]) -> str:
    """The name of the format among these that makes models of such objects. Raises InputError where there is none."""
    names = {f"{one.__module__}:{one.__qualname__}" for one in type(given).__mro__}
    found = [name for name, form in formats.items() if names.intersection(form.objects)]
    if format_name in found or (format_name is None and found):
        return format_name or found[0]
    known = ", ".join(sorted({_short(name) for form in formats.values() for name in form.objects}))
    hint = "a model may also be an opened file" + (f", or one of {known}" if known else "")
    raise InputError(f"a path is a text or a pathlib.Path, got {type(given).__name__}", hint=hint_for(given) or hint)


def _short(name: str) -> str:
    """``onnx.ModelProto`` of ``onnx.onnx_ml_pb2:ModelProto``."""
    module, _, kind = name.partition(":")
    return f"{module.partition('.')[0]}.{kind}"
