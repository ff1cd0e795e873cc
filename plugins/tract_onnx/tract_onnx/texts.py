"""Texts of a file are UTF-8, and its names can be shown: whatever reads the parsed file may rely on that.

The parser hands a text that is not UTF-8 over as bytes, and says nothing. A name with a character that steers a
terminal (`tract_core.texts`) is refused.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tract_core.errors import CorruptModel
from tract_core.texts import steers

_TEXT: Final = FieldDescriptor.TYPE_STRING
_MESSAGE: Final = FieldDescriptor.TYPE_MESSAGE


def check_texts(message: Message) -> None:
    """Raises CorruptModel, with the field's name, for a text in ``message``, at any depth, that must not be there."""
    pending: list[Any] = [message]
    while pending:
        current = pending.pop()
        for field, value in current.ListFields():
            if field.type == _MESSAGE:
                pending.extend((value,) if isinstance(value, Message) else value)
            elif field.type == _TEXT:
                _check(value, field.name, type(current).__name__)


def _check(value: Any, field: str, message: str) -> None:
    for text in (value,) if isinstance(value, (str, bytes)) else value:
        if isinstance(text, bytes):
            raise CorruptModel(f"a text is not UTF-8: {field}", where=message)
        if steers(text) and message not in _FREE and field not in _FREE:
            raise CorruptModel(
                f"the {field.replace('_', ' ')} {text[:80]!r} has a character that cannot be shown",
                where=message,
                hint="rename it when exporting: names are letters, digits and signs",
            )


_FREE: Final = frozenset({"StringStringEntryProto", "doc_string", "producer_name", "producer_version", "dim_param"})
"""Messages and fields that hold texts for people, or paths and sizes, which have rules of their own."""
