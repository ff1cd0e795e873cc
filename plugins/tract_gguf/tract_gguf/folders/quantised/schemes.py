"""The methods, by name; and the tensors of a folder with those of a matrix put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import LoadLimits, check_time
from tract_gguf.folders.quantised import awq, bitsandbytes, compressed, fp8, gptq, mxfp4
from tract_gguf.folders.quantised.module import CONFIG, Module, Settings
from tract_gguf.reading.quantised import QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor


@frozen
class Scheme:
    """A method. ``parts``: what the tensors of a matrix are called, behind its module and ``between``.

    ``matrix``: what makes one of them, of the configuration and the parts of a module. A module that has but
    ``weight``, of wide floats, was not quantised.
    """

    parts: tuple[str, ...]
    matrix: Callable[[Settings, Module], QuantisedTensor]
    between: str = "."


SCHEMES: Final[Mapping[str, Scheme]] = {
    "gptq": Scheme(gptq.PARTS, gptq.gptq),
    "awq": Scheme(awq.PARTS, awq.awq),
    "compressed-tensors": Scheme(compressed.PARTS, compressed.compressed),
    **dict.fromkeys(("fp8", "fbgemm_fp8"), Scheme(fp8.PARTS, fp8.fp8)),
    "mxfp4": Scheme(mxfp4.PARTS, mxfp4.mxfp4, "_"),
    "bitsandbytes": Scheme(bitsandbytes.PARTS, bitsandbytes.int8),
}
"""By ``quant_method``."""

_OF_ACTIVATIONS: Final = (
    "input_scale",
    "input_zero_point",
    "input_global_scale",
    "activation_scale",
    "k_scale",
    "v_scale",
)
"""How inputs of layers, keys and values are rounded while some runtimes compute. Here they are not."""


_PLAIN: Final = ("f64", "f32", "f16", "bf16")
"""Types of weights that were not quantised."""


def put_together(
    config: Mapping[str, Any], tensors: Mapping[str, GgufTensor], limits: LoadLimits
) -> Mapping[str, GgufTensor | QuantisedTensor]:
    """The tensors of a folder, where those of each quantised matrix are one. Raises ModelError."""
    said = config.get(CONFIG) or config.get("compression_config")
    if not said:
        return tensors
    if not isinstance(said, dict):
        raise CorruptModel(f"config.json has {said!r:.80} as {CONFIG}, wanted an object")
    settings = Settings(cast("Mapping[str, Any]", said))
    scheme = _scheme(settings)
    found, modules = _by_module(scheme, tensors)
    for module, parts in modules.items():
        check_time()
        if set(parts) == {"weight"} and parts["weight"].kind in _PLAIN:
            found[f"{module}.weight"] = parts["weight"]
        elif f"{module}.weight" in found:
            raise CorruptModel(f"there is a tensor {f'{module}.weight'!r:.200} beside those that it was quantised to")
        else:
            found[f"{module}.weight"] = scheme.matrix(settings, Module(module, parts, limits))
    return found


def _scheme(settings: Settings) -> Scheme:
    name = settings.said.get("quant_method")
    scheme = SCHEMES.get(name) if isinstance(name, str) else None
    if scheme is None:
        raise Unsupported(
            f"its weights are quantised by the method {name!r:.80}; known are {', '.join(SCHEMES)}",
            hint="take the network before that, or one that is quantised otherwise",
        )
    return scheme


def _by_module(
    scheme: Scheme, tensors: Mapping[str, GgufTensor]
) -> tuple[dict[str, GgufTensor | QuantisedTensor], dict[str, dict[str, GgufTensor]]]:
    """The tensors that are as they are, and those that are parts of matrices, by module and part."""
    others, modules = dict[str, GgufTensor | QuantisedTensor](), dict[str, dict[str, GgufTensor]]()
    for name, tensor in tensors.items():
        check_time()
        module, _, part = name.rpartition(scheme.between)
        if part in scheme.parts and module:
            modules.setdefault(module, {})[part] = tensor
        elif name.rpartition(".")[2] not in _OF_ACTIVATIONS:
            others[name] = tensor
    return others, modules
