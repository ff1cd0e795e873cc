"""The variables of a checkpoint: an index of where each is, and files of their elements, which are mapped in place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from tract_core.data import DatumType
from tract_core.data.stored import byte_count, checked_shape, from_bytes
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frontend.external import ExternalFiles
from tract_core.limits import LoadLimits
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef import slices
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
        self._entries: Mapping[bytes, Message] = {}
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
        found: dict[bytes, Message] = {}
        for key, value in entries(content):
            if not key:
                self._read_header(_parsed("BundleHeaderProto", value))
            else:
                found[key] = _parsed("BundleEntryProto", value)
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
        return next((key for key in (name, name + _SUFFIX) if key.encode() in self._entries), None)

    def tensor(self, key: str, part: str = "") -> Array:
        """The elements of a variable, or of a part of it: where the file has that in one piece, a view of the file.

        ``part``: as the graph names it; all of the variable by default. Raises ModelError, with the key.
        """
        try:
            entry = self._entries.get(key.encode())
            if entry is None:
                raise CorruptModel("it is not in the checkpoint", hint="the files belong to another model")
            if entry.slices:
                return self._of_parts(key, entry, part)
            whole = self._tensor(entry)
            return whole[slices.places(slices.part_named(part, whole.shape))] if part else whole
        except TractError as error:
            raise error.at(f"variable {key[:200]!r}") from None

    def _of_parts(self, key: str, entry: Message, wanted: str) -> Array:
        """A variable of which the file has parts."""
        kind = element_type(entry.dtype)
        shape = checked_shape((dim.size for dim in entry.shape.dim), self._limits)
        whole = slices.inside(tuple((0, -1) for _ in shape), shape)
        asked = slices.part_named(wanted, shape) if wanted else whole
        given = [tuple((one.start, one.length or -1) for one in each.extent) for each in entry.slices]
        parts = {slices.inside(part, shape): part for part in given}
        if asked in parts:
            return self._part(key, kind, asked, parts[asked])
        size = byte_count(kind, shape)
        if size > self._limits.max_tensor_bytes:
            raise LimitExceeded(f"it has {size} bytes, {self._limits.max_tensor_bytes} are allowed")
        if sum(math.prod(length for _, length in part) for part in parts) != math.prod(shape):
            raise CorruptModel(f"its {len(parts)} parts are not all of shape {list(shape)}")
        read = {part: self._part(key, kind, part, stored) for part, stored in parts.items()}
        found, is_there = np.empty(shape, kind.numpy), np.zeros(shape, np.bool_)
        for part, elements in read.items():
            found[slices.places(part)] = elements
            is_there[slices.places(part)] = True
        if not is_there.all():
            raise CorruptModel("its parts overlap")
        return found[slices.places(asked)]

    def _part(self, key: str, kind: DatumType, part: slices.Part, stored: slices.Part) -> Array:
        entry = self._entries.get(slices.key_of(key, stored))
        if entry is None:
            raise CorruptModel(f"its part {slices.listed(part)} is not in the checkpoint")
        found = self._tensor(entry)
        if found.dtype != kind.numpy or found.shape != tuple(length for _, length in part):
            raise CorruptModel(f"its part {slices.listed(part)} is of another shape or type: {list(found.shape)}")
        return found

    def _tensor(self, entry: Message) -> Array:
        if entry.slices:
            raise CorruptModel("a part of it is in parts")
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
