"""What to say when something is asked for that a distribution which is not installed would bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from tract_core.errors import PluginError

DISTRIBUTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "runtime": {
        "cpu": "tract-cpu",
        "cuda": "tract-cuda",
        "metal": "tract-metal",
        "gpu": "tract-cuda (NVIDIA) or tract-metal (Apple)",
        "gpu-or-cpu": "tract-cuda (NVIDIA) or tract-metal (Apple)",
    },
    "format": {"onnx": "tract-onnx", "nnef": "tract-nnef"},
    "transform": {
        "pulse": "tract-pulse",
        "blockify": "tract-pulse",
        "patch": "tract-nnef",
        "transformers_detect_all": "tract-transformers",
        "detect_apply_rope": "tract-transformers",
        "detect_diag_gather": "tract-transformers",
        "detect_kv_cache": "tract-transformers",
        "detect_scaled_masked_softmax": "tract-transformers",
        "detect_sdpa_kv_cache_broadcast": "tract-transformers",
        "unfold_kv_cache": "tract-transformers",
    },
}
"""Which distribution of this project brings what, by kind and name."""


_OTHERWISE: Final[Mapping[str, str]] = {
    "runtime": "'default' is the best CPU runtime that is installed",
    "format": "'tract plugins' lists what is installed",
    "transform": "'tract list-transforms' lists them with their parameters",
}
"""What to say of a name that no distribution of this project brings."""


def not_installed(kind: str, name: str, installed: Iterable[str]) -> PluginError:
    """The error for a runtime, format or transform that is not there: what is, and what to install."""
    there = list(installed)
    distribution = DISTRIBUTIONS[kind].get(name)
    problem = f"{kind} {name!r} is not installed; installed {kind}s: {', '.join(there) or 'none'}"
    if distribution is not None:
        return PluginError(problem, hint=f"pip install {distribution}")
    near = get_close_matches(name.lower(), there, n=1)
    return PluginError(problem, hint=f"did you mean {near[0]!r}?" if near else _OTHERWISE[kind])
