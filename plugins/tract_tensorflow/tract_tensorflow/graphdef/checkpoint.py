"""The variables of a checkpoint: an index of where each is, and files of their elements, which are mapped in place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from tract_core.data.stored import byte_count, checked_shape, from_bytes
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frontend.external import ExternalFiles
from tract_core.limits import LoadLimits
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.protos import CLASSES, Message
from tract_tensorflow.graphdef.sstable import entries, masked_checksum
from tract_tensorflow.graphdef.tensors import element_type

_SUFFIX: Final = "/.ATTRIBUTES/VARIABLE_VALUE"


class Checkpoint:
    """The checkpoint whose files begin with ``prefix``, a path below the folder of the file ``model``.

    Raises ModelError when the index cannot be read; `tensor`, when a variable cannot.
    """

    def __init__(self, model: Path, prefix: str, limits: LoadLimits) -> None:
        self._files = ExternalFiles(model, limits)
        self._limits = limits
        self._prefix = prefix
        self._shards = 0
        self._entries: Mapping[str, Message] = {}
        try:
            self._read_index()
        except TractError as error:
            raise error.at(f"{prefix}.index") from None

    def _read_index(self) -> None:
        content = bytes(self._files.open(f"{self._prefix}.index"))
        if len(content) > self._limits.max_parsed_bytes:
            raise LimitExceeded(
                f"the index has {len(content)} bytes, {self._limits.max_parsed_bytes} are allowed",
                hint="a model that needs so many can be loaded with LoadLimits(max_parsed_bytes=...)",
            )
        found: dict[str, Message] = {}
        for key, value in entries(content):
            if not key:
                self._read_header(_parsed("BundleHeaderProto", value))
            else:
                found[_name(key)] = _parsed("BundleEntryProto", value)
        if not self._shards:
            raise CorruptModel("it does not begin with how many files there are")
        self._entries = found

    def _read_header(self, header: Message) -> None:
        if header.endianness:
            raise Unsupported("its elements are stored with the highest byte first")
        if header.num_shards < 1:
            raise CorruptModel(f"it says that the variables are in {header.num_shards} files")
        self._shards = header.num_shards

    def key_of(self, name: str) -> str | None:
        """The key of a variable whose name is that, or whose name is part of it; ``None`` where there is none."""
        return next((key for key in (name, name + _SUFFIX) if key in self._entries), None)

    def tensor(self, key: str) -> Array:
        """The elements of a variable: a view of the file. Raises ModelError, with the key."""
        try:
            return self._tensor(key)
        except TractError as error:
            raise error.at(f"variable {key[:200]!r}") from None

    def _tensor(self, key: str) -> Array:
        entry = self._entries.get(key)
        if entry is None:
            raise CorruptModel("it is not in the checkpoint", hint="the files belong to another model")
        if entry.slices:
            raise Unsupported("it is stored in slices", hint="save the model with variables that are in one piece")
        kind = element_type(entry.dtype)
        shape = checked_shape((dim.size for dim in entry.shape.dim), self._limits)
        if not 0 <= entry.shard_id < self._shards or entry.offset < 0 or entry.size != byte_count(kind, shape):
            raise CorruptModel(
                f"{kind.short} of shape {list(shape)} is to be {entry.size} bytes at {entry.offset} of file"
                f" {entry.shard_id + 1} of {self._shards}"
            )
        if entry.size > self._limits.max_tensor_bytes:
            raise LimitExceeded(f"it has {entry.size} bytes, {self._limits.max_tensor_bytes} are allowed")
        if not entry.size:
            return np.empty(shape, kind.numpy)
        location = f"{self._prefix}.data-{entry.shard_id:05}-of-{self._shards:05}"
        content = self._files.open(location)
        if entry.offset + entry.size > len(content):
            raise CorruptModel(
                f"its {entry.size} bytes at {entry.offset} go beyond the {len(content)} bytes of {location!r}",
                hint="the file is truncated, or belongs to another model",
            )
        raw = np.frombuffer(content, np.uint8, entry.size, entry.offset)
        if masked_checksum(raw) != entry.crc32c:
            raise CorruptModel(f"its checksum is another one than {location!r} has", hint="the file is damaged")
        return from_bytes(kind, shape, content, entry.offset, entry.size)


def _parsed(kind: str, content: bytes) -> Message:
    message = CLASSES[kind]()
    try:
        message.ParseFromString(content)
    except (DecodeError, ValueError) as error:
        raise CorruptModel(f"an entry cannot be read: {error}") from None
    return message


def _name(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return repr(key)  # of a slice of a variable, whose parts nobody asks for by name
