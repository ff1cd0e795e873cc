"""A whole folder: the configuration, and the tensors of all its files, in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, cast

import numpy as np

from tract_core.data.blocks import Blocks
from tract_core.errors import CorruptModel, MissingFile, TractError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.plugins.keys import Array
from tract_core.safe_files import map_file, plain_file_below, resolve_below
from tract_gguf.folders.config import Config, Kind, kind_of, metadata_of
from tract_gguf.folders.encoders import encoder_file, encoder_of
from tract_gguf.folders.halves import HEAD, Family, family_of, metadata_of_halves
from tract_gguf.folders.names import name_in_files
from tract_gguf.folders.quantised.schemes import put_together
from tract_gguf.folders.safetensors import parsed, read_tensors
from tract_gguf.reading.file import GgufFile
from tract_gguf.reading.quantised import QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor

CONFIG: Final = "config.json"
WEIGHTS: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"

Tensor: TypeAlias = GgufTensor | QuantisedTensor


def read_folder(path: Path, limits: LoadLimits = DEFAULT_LIMITS) -> GgufFile:
    """What the folder holds, as a file of GGUF would. Raises ModelError, with the path.

    Files are mapped into memory, and have to stay as they are as long as the tensors are used.
    """
    try:
        with spending(limits):
            return _read(Folder(path, limits), limits)
    except TractError as error:
        raise error.at(str(path)) from error.__cause__


class Folder:
    """The files of a folder, and those beside what its configuration is a link to."""

    def __init__(self, path: Path, limits: LoadLimits) -> None:
        self._limits = limits
        self._folders = list(dict.fromkeys((path.resolve(), (path / CONFIG).resolve().parent)))

    def __contains__(self, name: str) -> bool:
        """Whether there is something of that name."""
        return (self._folders[0] / name).exists()

    def content(self, name: str) -> mmap | bytes:
        """The content of a file. Raises ModelError, with its name."""
        try:
            folder, path = resolve_below(self._folders, name)
            with plain_file_below(folder, path, name) as (descriptor, status):
                if status.st_size > self._limits.max_bytes:
                    raise CorruptModel(f"it has {status.st_size} bytes, {self._limits.max_bytes} are allowed")
                return map_file(descriptor, status.st_size)
        except OSError as error:
            raise MissingFile(f"it cannot be read: {error.strerror or error}", where=name) from None
        except TractError as error:
            raise error.at(name) from None

    def said(self, name: str) -> Config:
        """An object of JSON. Raises ModelError, with its name."""
        content = self.content(name)
        if len(content) > self._limits.max_parsed_bytes:
            raise CorruptModel(f"it has {len(content)} bytes, {self._limits.max_parsed_bytes} are allowed", where=name)
        return parsed(content[:], name)


def _read(folder: Folder, limits: LoadLimits) -> GgufFile:
    config = folder.said(CONFIG)
    family = family_of(config)
    if family is not None:
        return _in_halves(config, family, put_together(config, _tensors(folder, limits), limits))
    encoder = encoder_of(config)
    if encoder is not None:
        return encoder_file(config, encoder, put_together(config, _tensors(folder, limits), limits))
    kind = kind_of(config)
    metadata, extra = metadata_of(config, kind)
    tensors: dict[str, Tensor] = {name: _of_array(name, array) for name, array in extra.items()}
    for name, tensor in put_together(config, _tensors(folder, limits), limits).items():
        called = name_in_files(name, kind.names)
        if called is not None and called in tensors:
            raise CorruptModel(f"there are two tensors that files call {called!r:.80}")
        if called is not None:
            tensors[called] = _stored(called, tensor, kind, config)
    if config.get("tie_word_embeddings", kind.architecture.startswith(("gemma", "gpt2"))):
        tensors.pop("output.weight", None)
    elif "output.weight" not in tensors:
        raise CorruptModel("config.json says that logits have a matrix of their own, and there is none")
    return GgufFile(3, 1, MappingProxyType(metadata), MappingProxyType(tensors))


def _in_halves(config: Config, family: Family, held: Mapping[str, Tensor]) -> GgufFile:
    """A network of an encoder and a decoder. Raises ModelError."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in held.items():
        called = family.name(name)
        if called is not None and called in tensors:
            raise CorruptModel(f"there are two tensors that files call {called!r:.80}")
        if called is not None:
            tensors[called] = replace(tensor, name=called)
    if config.get("tie_word_embeddings") is not False:
        tensors.pop(HEAD, None)
    return GgufFile(3, 1, MappingProxyType(metadata_of_halves(config, family)), MappingProxyType(tensors))


def _files(folder: Folder) -> Sequence[str]:
    """The names of those that have weights. Raises CorruptModel."""
    if INDEX not in folder:
        return [WEIGHTS]
    places = folder.said(INDEX).get("weight_map")
    if not isinstance(places, dict):
        raise CorruptModel("it has no object of names of files as weight_map", where=INDEX)
    names = cast("Mapping[str, object]", places).values()
    found = {name for name in names if isinstance(name, str)}
    if len(found) != len(set(map(str, names))):
        raise CorruptModel("it has no object of names of files as weight_map", where=INDEX)
    return sorted(found)


def _tensors(folder: Folder, limits: LoadLimits) -> Mapping[str, GgufTensor]:
    """Of all files. Raises CorruptModel where two have one of the same name."""
    found: dict[str, GgufTensor] = {}
    for name in _files(folder):
        try:
            here = read_tensors(folder.content(name), limits)
        except TractError as error:
            raise error.at(name) from None
        twice = next((one for one in here if one in found), None)
        if twice is not None:
            raise CorruptModel(f"the tensor {twice!r:.80} is in two files")
        found |= here
    return found


def _stored(name: str, tensor: Tensor, kind: Kind, config: Config) -> Tensor:
    """A tensor in the order that files have it in; those that were quantised are never turned."""
    if isinstance(tensor, QuantisedTensor):
        rows = np.arange(tensor.shape[0])
        in_parts = kind.architecture == "gptneox" and ".attn_qkv." in name
        order = _by_part(rows, config.get("num_attention_heads")) if in_parts else None
        return replace(tensor if order is None else tensor.rows(order), name=name)
    if kind.scales_less_one and name.endswith("norm.weight"):
        return _of_array(name, _array(tensor).astype(np.float32) + 1)
    if kind.turned and len(tensor.shape) == 2 and name.startswith("blk."):
        return _of_array(name, np.ascontiguousarray(_array(tensor).T))
    if kind.architecture == "gpt-oss-in-pairs" and len(tensor.shape) == 3:
        return _of_array(name, np.ascontiguousarray(_array(tensor).swapaxes(1, 2)))
    if kind.architecture == "gptneox" and ".attn_qkv." in name:
        return _of_array(name, _by_part(_array(tensor), config.get("num_attention_heads")))
    return GgufTensor(name, tensor.kind, tensor.shape, tensor.content)


def _array(tensor: GgufTensor) -> Array:
    held = tensor.stored()
    assert not isinstance(held, Blocks)  # files of safetensors have none
    return held


def _by_part(array: Array, heads: object) -> Array:
    """Rows [heads,3,size] as [3,heads,size]: GPT-NeoX has queries, keys and values of each head together."""
    if type(heads) is not int or heads < 1 or len(array) % (3 * heads):
        raise CorruptModel(f"{heads!r:.80} heads do not share {len(array)} rows of queries, keys and values")
    parts = array.reshape(heads, 3, -1, *array.shape[1:])
    return np.ascontiguousarray(parts.swapaxes(0, 1)).reshape(array.shape)


def _of_array(name: str, array: Array) -> GgufTensor:
    kind = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64"}.get(array.dtype.name)
    if kind is None:
        raise CorruptModel(f"the tensor {name!r:.80} has elements of {array.dtype}, wanted floats")
    return GgufTensor(name, kind, array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
