"""Names and other texts of a file are UTF-8: whatever reads the parsed file may rely on that.

The parser hands a text that is not over as bytes, and says nothing.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tract_core.errors import CorruptModel

_TEXT: Final = FieldDescriptor.TYPE_STRING
_MESSAGE: Final = FieldDescriptor.TYPE_MESSAGE


def check_texts(message: Message) -> None:
    """Raises CorruptModel, with the field's name, when a text in ``message``, at any depth, is not UTF-8."""
    pending: list[Any] = [message]
    while pending:
        current = pending.pop()
        for field, value in current.ListFields():
            if field.type == _MESSAGE:
                pending.extend((value,) if isinstance(value, Message) else value)
            elif field.type == _TEXT and (type(value) is bytes or (type(value) is not str and _has_bytes(value))):
                raise CorruptModel(f"a text is not UTF-8: {field.name}", where=type(current).__name__)


def _has_bytes(values: Any) -> bool:
    return any(type(value) is bytes for value in values)
