"""What to say when something is asked for that a distribution which is not installed would bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tract_core.errors import PluginError

RESERVED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "runtime": {
        "cpu": ("tract-cpu",),
        "cuda": ("tract-cuda",),
        "metal": ("tract-metal",),
        "gpu": ("tract-cuda", "tract-metal"),
        "gpu-or-cpu": ("tract-cuda", "tract-metal"),
    },
    "format": {"onnx": ("tract-onnx",), "nnef": ("tract-nnef",), "crvo": ("tract-inferers",)},
    "transform": {
        "pulse": ("tract-pulse",),
        "patch": ("tract-nnef",),
        "transformers_detect_all": ("tract-transformers",),
        "detect_apply_rope": ("tract-transformers",),
        "detect_diag_gather": ("tract-transformers",),
        "detect_kv_cache": ("tract-transformers",),
        "detect_scaled_masked_softmax": ("tract-transformers",),
        "detect_sdpa_kv_cache_broadcast": ("tract-transformers",),
        "unfold_kv_cache": ("tract-transformers",),
    },
}
"""The names that are reserved for distributions of this project, by kind; any of the distributions may bring it."""

ENDINGS: Final = {
    ".onnx": "tract-onnx",
    ".nnef": "tract-nnef",
    ".tgz": "tract-nnef",
    ".tar": "tract-nnef",
    ".crvo": "tract-inferers",
}
"""The distributions that files are meant for, by the end of their names."""

WRITER: Final = "tract-nnef"
"""The distribution that brings the format for archives."""

PLANNED: Final = frozenset({"tract-cuda", "tract-metal", "tract-transformers"})
"""The distributions that do not exist yet: nobody is told to install them, as what bears the name may be anybody's."""

_OTHERWISE: Final[Mapping[str, str]] = {
    "runtime": "'default' is the best CPU runtime that is installed",
    "format": "'tract plugins' lists what is installed",
    "transform": "'tract list-transforms' lists them with their parameters",
}
"""What to say of a name that no distribution of this project brings."""


def not_installed(kind: str, name: str, installed: Iterable[str]) -> PluginError:
    """The error for a runtime, format or transform that is not there: what is, and what to install."""
    there = list(installed)
    distributions = RESERVED[kind].get(name)
    problem = f"{kind} {name!r} is not installed; installed {kind}s: {', '.join(there) or 'none'}"
    if distributions is not None:
        return PluginError(problem, hint=how_to_get(*distributions))
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), there, n=1)
    return PluginError(problem, hint=f"did you mean {near[0]!r}?" if near else _OTHERWISE[kind])


def how_to_get(*distributions: str) -> str:
    """What to do for something that any of these distributions brings: the ``pip install``, once there is one."""
    there = [name for name in distributions if name not in PLANNED]
    if there:
        return f"pip install {' or '.join(there)}"
    which = "which is planned" if len(distributions) == 1 else "which are planned"
    return f"it will come with {' or '.join(distributions)}, {which} and cannot be installed yet"
