"""The distributions of this project."""

from __future__ import annotations

from typing import Final

CORE: Final = "tract-core"
"""The distribution that the core is."""

DISTRIBUTIONS: Final = frozenset(
    {
        CORE,
        *(f"tract-{name}" for name in ("compat", "cpu", "cuda", "gguf", "inferers", "llvm")),
        *(
            f"tract-{name}"
            for name in ("metal", "nnef", "onnx", "pulse", "ray", "serve", "torch", "transformers", "view")
        ),
    }
)
"""All that there are."""
