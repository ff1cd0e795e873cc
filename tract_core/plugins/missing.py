"""What to say when something is asked for that a distribution which is not installed would bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tract_core.errors import PluginError
from tract_core.plugins.installing import how_to_install, is_installed

RESERVED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "runtime": {
        "cpu": ("tract-cpu",),
        "cuda": ("tract-cuda",),
        "metal": ("tract-metal",),
        "gpu": ("tract-cuda", "tract-metal"),
        "gpu-or-cpu": ("tract-cuda", "tract-metal"),
    },
    "format": {
        "onnx": ("tract-onnx",),
        "nnef": ("tract-nnef",),
        "crvo": ("tract-inferers",),
        "pt2": ("tract-torch",),
        "gguf": ("tract-gguf",),
        "huggingface": ("tract-gguf",),
        "tflite": ("tract-tensorflow",),
        "tensorflow": ("tract-tensorflow",),
    },
    "partner": {
        "onnxruntime": ("tract-onnx",),
        "openvino": ("tract-onnx",),
        "tensorflow": ("tract-tensorflow",),
        "tflite": ("tract-tensorflow",),
        "torch": ("tract-torch",),
    },
    "subcommand": {
        "cache": ("tract-llvm",),
        "chat": ("tract-transformers",),
        "cuda": ("tract-cuda",),
        "compile": ("tract-cpu",),
        "compiled": ("tract-cpu",),
        "generate": ("tract-transformers",),
        "hwbench": ("tract-cpu",),
        "llm-bench": ("tract-transformers",),
        "native": ("tract-cpu",),
        "perplexity": ("tract-transformers",),
        "serve": ("tract-serve",),
        "transcribe": ("tract-transformers",),
        "inferers": ("tract-inferers",),
        "torch-export": ("tract-torch",),
        "view": ("tract-view",),
    },
    "transform": {
        "pulse": ("tract-pulse",),
        "block_quant": ("tract-nnef",),
        "nnef_cycle": ("tract-nnef",),
        "patch": ("tract-nnef",),
        "transformers_detect_all": ("tract-transformers",),
        "detect_apply_rope": ("tract-transformers",),
        "detect_diag_gather": ("tract-transformers",),
        "detect_kv_cache": ("tract-transformers",),
        "detect_scaled_masked_softmax": ("tract-transformers",),
        "detect_sdpa_kv_cache_broadcast": ("tract-transformers",),
        "last_logits": ("tract-transformers",),
        "paged_cache": ("tract-transformers",),
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
    ".pt2": "tract-torch",
    ".gguf": "tract-gguf",
    ".tflite": "tract-tensorflow",
    ".lite": "tract-tensorflow",
    ".pb": "tract-tensorflow",
}
"""The distributions that files are meant for, by the end of their names."""

FLAGS: Final = {
    "--nnef": "tract-nnef",
    "--no-nnef": "tract-nnef",
    "--opl": "tract-nnef",
    "--compress-submodels": "tract-nnef",
    "--compiled": "tract-nnef",
    "--onnx": "tract-onnx",
    "--tflite": "tract-tensorflow",
    "--tensorflow": "tract-tensorflow",
    "--pulse": "tract-pulse",
}
"""The distributions that flags of the command come with, by how they begin: up to the end, or to a hyphen."""

WRITER: Final = "tract-nnef"
"""The distribution that brings the format for archives."""

PLANNED: Final = frozenset[str]()
"""The distributions that do not exist yet: nobody is told to install them, as what bears the name may be anybody's."""

LATER: Final = frozenset(
    {
        "transformers_detect_all",
        "detect_apply_rope",
        "detect_diag_gather",
        "detect_scaled_masked_softmax",
        "detect_sdpa_kv_cache_broadcast",
    }
)
"""The transforms that are reserved for tract-transformers, which does not bring them yet."""

_OTHERWISE: Final[Mapping[str, str]] = {
    "runtime": "'default' is the best CPU runtime that is installed",
    "format": "'tract plugins' lists what is installed",
    "partner": "a plugin can add one: see the table 'partners' in docs/plugins.md",
    "transform": "'tract list-transforms' lists them with their parameters",
}
"""What to say of a name that no distribution of this project brings."""


def not_installed(kind: str, name: str, installed: Iterable[str]) -> PluginError:
    """The error for a runtime, format or transform that is not there: which are, and what to install."""
    there = list(installed)
    distributions = RESERVED[kind].get(name)
    problem = f"{kind} {name!r} is not installed; installed {kind}s: {', '.join(there) or 'none'}"
    if kind == "transform" and name in LATER:
        return PluginError(problem, hint="it will come with tract-transformers, in a later version")
    if distributions is not None:
        return PluginError(problem, hint=how_to_get(*distributions))
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), there, n=1)
    return PluginError(problem, hint=f"did you mean {near[0]!r}?" if near else _OTHERWISE[kind])


def brings_flag(flag: str) -> str | None:
    """The distribution of this project that a flag comes with, as ``--nnef-tar`` with ``tract-nnef``."""
    return next((name for start, name in FLAGS.items() if flag == start or flag.startswith(f"{start}-")), None)


def how_to_get(*distributions: str) -> str:
    """What to do for something that any of these distributions brings: the line that installs the first there is."""
    there = [name for name in distributions if name not in PLANNED]
    if there:
        left_out = f"{there[0]} is installed, but not in use: 'tract plugins' says why"
        return left_out if is_installed(there[0]) else how_to_install(there[0])
    which = "which is planned" if len(distributions) == 1 else "which are planned"
    return f"it will come with {' or '.join(distributions)}, {which} and cannot be installed yet"
