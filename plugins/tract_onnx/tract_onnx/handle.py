"""What users hold: ``tract.onnx().load("model.onnx")``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from tract_core.api.loading import Loader

if TYPE_CHECKING:
    from tract_core.api.inference_model import InferenceModel
    from tract_core.limits import LoadLimits
    from tract_core.plugins import Registry


class Onnx:
    """Loads ONNX files."""

    def __init__(self, registry: Registry | None = None) -> None:
        """``registry``: the plugins to ask, those that are installed by default."""
        self._loader = Loader("onnx", registry)

    def load(
        self,
        path: str | os.PathLike[str],
        *,
        ignore_value_info: bool = False,
        ignore_output_shapes: bool = False,
        ignore_output_types: bool = False,
        strict_facts: bool = False,
        own_symbols: bool = False,
        growing_caches: bool = False,
        limits: LoadLimits | None = None,
    ) -> InferenceModel:
        """The model of an ``.onnx`` file, with its external data. Raises ModelError, with the file's name.

        What files say about tensors inside them (``value_info``), and about the shapes and types of their outputs,
        fills in what the operators leave open. What is wrong about it is set aside with a `ModelWarning`, or an error
        with ``strict_facts``; what is ignored does not count at all. ``own_symbols``: sizes of inputs that have one
        name in the file may differ, each has a symbol of its own. ``growing_caches``: a promise for models that
        generate: no row of a batch is padded, and caches of keys and values are given without room for what is to
        come, so that new ones are simply put behind. ``limits``: what the file may ask for.
        """
        model = self._loader.load(
            path,
            ignore_value_info=ignore_value_info,
            ignore_output_shapes=ignore_output_shapes,
            ignore_output_types=ignore_output_types,
            strict_facts=strict_facts,
            own_symbols=own_symbols,
            growing_caches=growing_caches,
            limits=limits,
        )
        return cast("InferenceModel", model)

    def load_bytes(self, content: bytes, **options: Any) -> InferenceModel:
        """The model in the content of an ``.onnx`` file, as ``model.SerializeToString()`` gives it.

        ``options``: the keywords of `load`. Raises ModelError, also for a model that keeps tensors in other files.
        """
        return cast("InferenceModel", self._loader.load_bytes(content, **options))

    def __repr__(self) -> str:
        return repr(self._loader)
