"""A policy as bytes: an ONNX or NNEF model, with what kind it is of in front."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import field
from mmap import mmap
from typing import Self, TypeVar

from tract_core.api.formats import missing_file
from tract_core.api.given import checked_path
from tract_core.api.inference_model import InferenceModel
from tract_core.api.loading import Loader
from tract_core.api.model import Model
from tract_core.api.runtime import Runtime
from tract_core.errors import InputError, TractError
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.lookalikes import HEAD
from tract_core.safe_files import map_path
from tract_core.saving import whole_file
from tract_inferers.assets.convert import nnef_of
from tract_inferers.assets.header import SIZE, AssetKind, header_of, kind_in
from tract_inferers.assets.reading import Reader, content_of, name_of
from tract_inferers.builder import InfererBuilder
from tract_inferers.inferers.basic import BasicInferer
from tract_inferers.inferers.dynamic import DynamicInferer
from tract_inferers.inferers.fixed import FixedBatchInferer
from tract_inferers.inferers.memoizing import MemoizingDynamicInferer

T = TypeVar("T")


@frozen
class AssetData:
    """A policy as bytes. Nothing of the model is looked at before it is loaded.

    ``kind``: the format of the model. ``data``: the content of a file of that format. ``name``: what messages call it.
    ``limits``: what the model may ask for when it is loaded.
    """

    kind: AssetKind
    data: bytes = field(repr=False)
    name: str = field(default="asset", compare=False)
    limits: LoadLimits = field(default=DEFAULT_LIMITS, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", AssetKind(self.kind))
        object.__setattr__(self, "data", content_of(self.data, self.limits))

    @classmethod
    def from_reader(cls, kind: AssetKind, reader: Reader, *, limits: LoadLimits = DEFAULT_LIMITS) -> Self:
        """The model of that kind that is all that ``reader`` gives, which is anything with ``read(count)``.

        Raises InputError for a reader that fails or gives no bytes, LimitExceeded.
        """
        name = name_of(reader) or "asset"
        try:
            return cls(kind, content_of(reader, limits), name, limits)
        except TractError as error:
            raise error.at(name) from error.__cause__

    @classmethod
    def deserialize(cls, source: bytes | Reader, *, limits: LoadLimits = DEFAULT_LIMITS) -> Self:
        """The asset in the content of a ``.crvo`` file, or in what a reader of one gives.

        Raises CorruptModel where it does not begin as assets do; the model in it is looked at when it is loaded.
        Raises InputError, LimitExceeded as `from_reader` does.
        """
        name = name_of(source) or "asset"
        try:
            return cls._parsed(content_of(source, limits), name, limits)
        except TractError as error:
            raise error.at(name) from error.__cause__

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limits: LoadLimits = DEFAULT_LIMITS) -> Self:
        """The asset in a ``.crvo`` file. Raises as `deserialize` does, MissingFile."""
        found = checked_path(path)
        if not found.exists():
            raise missing_file(found)
        try:
            return cls._parsed(map_path(found, limits), str(found), limits)
        except TractError as error:
            raise error.at(str(found)) from error.__cause__

    @classmethod
    def _parsed(cls, content: bytes | mmap, name: str, limits: LoadLimits) -> Self:
        return cls(kind_in(content[:HEAD], name), content[SIZE:], name, limits)

    def serialize(self) -> bytes:
        """The content of a ``.crvo`` file."""
        return header_of(self.kind) + self.data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.crvo`` file, whole or not at all. Raises InputError where it cannot be written."""
        with whole_file(checked_path(path)) as file:
            file.write(header_of(self.kind))
            file.write(self.data)

    def load_model(self) -> InferenceModel | Model:
        """The model: an `InferenceModel` of ONNX, a `Model` of NNEF.

        Raises ModelError, with the name of the asset; PluginError where the plugin for its kind is not installed.
        """
        try:
            return Loader(self.kind.format_name).load_bytes(self.data, limits=self.limits)
        except TractError as error:
            raise error.at(self.name) from error.__cause__

    def load_basic(self, *, runtime: str | Runtime = "default") -> BasicInferer:
        """A policy that runs its agents one by one. ``runtime``: what runs it, by name or as a `Runtime`.

        Raises as `load_model` does, and Unsupported for a model that is no policy; these all do.
        """
        return self._made(lambda model: InfererBuilder(model, runtime=runtime).build_basic())

    def load_fixed(self, sizes: Iterable[int], *, runtime: str | Runtime = "default") -> FixedBatchInferer:
        """A policy with a plan for each of these numbers of agents, and for one."""
        return self._made(lambda model: InfererBuilder(model, runtime=runtime).build_fixed(sizes))

    def load_memoizing(
        self, preloaded_sizes: Iterable[int] = (), *, runtime: str | Runtime = "default"
    ) -> MemoizingDynamicInferer:
        """A policy with a plan for each number of agents that comes up, and for those that are given here."""
        return self._made(lambda model: InfererBuilder(model, runtime=runtime).build_memoizing(preloaded_sizes))

    def load_dynamic(self, *, runtime: str | Runtime = "default") -> DynamicInferer:
        """A policy with one plan for any number of agents."""
        return self._made(lambda model: InfererBuilder(model, runtime=runtime).build_dynamic())

    def to_nnef(self, batch_size: int | None = None) -> AssetData:
        """The same policy as an NNEF archive, which loads faster: a plain tar, the same bytes for the same model.

        It takes any number of agents, which it calls N, or ``batch_size`` of them and no others, which is for other
        engines: `load_model` takes it, and it is no policy here. Raises InputError for an asset that is NNEF already,
        and for a size below 1; ModelError as `load_model` does, Unsupported for a model that is none for many agents,
        or that NNEF cannot say.
        """
        if self.kind is AssetKind.NNEF:
            raise InputError("it is NNEF already", where=self.name, hint="only ONNX assets are turned into NNEF")
        content = self._made(lambda model: nnef_of(model, batch_size))
        return AssetData(AssetKind.NNEF, content, self.name, self.limits)

    def _made(self, make: Callable[[InferenceModel | Model], T]) -> T:
        """What is made of the model; whatever goes wrong has the name of the asset."""
        model = self.load_model()
        try:
            return make(model)
        except TractError as error:
            raise error.at(self.name) from error.__cause__
