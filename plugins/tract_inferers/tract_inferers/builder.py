"""From a file to a policy."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Protocol, Self

from tract_core.api.formats import find_format
from tract_core.api.given import checked_path
from tract_core.api.loading import Loader
from tract_core.api.runtime import Runtime
from tract_inferers.inferers.basic import BasicInferer
from tract_inferers.inferers.dynamic import DynamicInferer
from tract_inferers.inferers.fixed import FixedBatchInferer
from tract_inferers.inferers.memoizing import MemoizingDynamicInferer
from tract_inferers.models.symbolic import AnyModel


class InfererProvider(Protocol):
    """Something that policies of each kind can be made of."""

    def build_basic(self) -> BasicInferer:
        """A policy that runs its agents one by one."""
        ...

    def build_fixed(self, sizes: Iterable[int]) -> FixedBatchInferer:
        """A policy with a plan for each of these numbers of agents."""
        ...

    def build_memoizing(self, preloaded_sizes: Iterable[int] = ()) -> MemoizingDynamicInferer:
        """A policy with a plan for each number of agents that comes up."""
        ...

    def build_dynamic(self) -> DynamicInferer:
        """A policy with one plan for any number of agents."""
        ...


class InfererBuilder(InfererProvider):
    """Makes policies of a model, as many as one likes. Each raises Unsupported where the model is none for agents.

    ``runtime``: what runs them, by name or as a `Runtime`.
    """

    def __init__(self, model: AnyModel, *, runtime: str | Runtime = "default") -> None:
        self._model = model
        self._runtime = runtime

    @classmethod
    def from_path(
        cls,
        path: str | os.PathLike[str],
        *,
        format_name: str | None = None,
        runtime: str | Runtime = "default",
        **options: Any,
    ) -> Self:
        """For a file of any installed format, which its ending tells, unless ``format_name`` does.

        ``options``: keywords of the format's loader. Raises ModelError, with the file's name, for one that cannot be
        read, PluginError for a format that is not installed.
        """
        name, found = find_format(checked_path(path), format_name)
        return cls(Loader(name).load(found, **options), runtime=runtime)

    @classmethod
    def from_bytes(
        cls, content: bytes, format_name: str, *, runtime: str | Runtime = "default", **options: Any
    ) -> Self:
        """For the content of a file of a format, as ``"onnx"``. Else as `from_path`."""
        return cls(Loader(format_name).load_bytes(content, **options), runtime=runtime)

    def build_basic(self) -> BasicInferer:
        """A policy that runs its agents one by one."""
        return BasicInferer.from_model(self._model, runtime=self._runtime)

    def build_fixed(self, sizes: Iterable[int]) -> FixedBatchInferer:
        """A policy with a plan for each of these numbers of agents, and for one."""
        return FixedBatchInferer.from_model(self._model, sizes, runtime=self._runtime)

    def build_memoizing(self, preloaded_sizes: Iterable[int] = (), **options: Any) -> MemoizingDynamicInferer:
        """A policy with a plan for each number of agents that comes up. ``options``: `capacity`, `background`."""
        return MemoizingDynamicInferer.from_model(self._model, preloaded_sizes, runtime=self._runtime, **options)

    def build_dynamic(self) -> DynamicInferer:
        """A policy with one plan for any number of agents."""
        return DynamicInferer.from_model(self._model, runtime=self._runtime)
