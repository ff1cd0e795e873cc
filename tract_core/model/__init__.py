"""Models and their lifecycle: graphs, facts, patches, rewriting.

The public names, in ``__init__.pyi``, are those of the established architecture: a model starts as an `InferenceModel`,
becomes a `TypedModel` once every type and shape is known, and is brought to its normal form by `TypedModel.declutter`.
"""

from __future__ import annotations

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__)
