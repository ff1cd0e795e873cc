"""Quantise the weights of modules: calibrations, and a registry of what is done to which layers."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

import torch

from tract_core.data.blocks import Q4_0
from tract_core.errors import InputError, ModelWarning, meant
from tract_torch.arguments import of_type
from tract_torch.weights.qtensor import QScalePerGroupF16, QTensor, QTensorTractScaleOnly
from tract_torch.weights.updater import ModTensorUpdater

_LARGEST: Final = 65520
"""From here on, f16 rounds to infinity."""


def qscale_per_group_f16_min_max_calibration(
    fp_tensor: torch.Tensor, n_bits: int = 4, group_size: int = 32, percentile: float = 1.0
) -> QScalePerGroupF16:
    """The scheme with which the largest magnitude of each group becomes the last integer, 0.

    ``percentile``: of the magnitudes, the share that is at most what becomes the last integer, so that outliers do not
    widen the steps; between 0 and 1. Raises InputError for a number that is none, for elements that are no whole
    groups, and where a scale is not finite in f16.
    """
    if not 0 < percentile <= 1:
        raise InputError(f"'percentile' is {percentile}, wanted more than 0 and at most 1")
    if fp_tensor.numel() % group_size:
        raise InputError(f"{fp_tensor.numel()} elements are no whole groups of {group_size}")
    magnitudes = fp_tensor.detach().reshape(-1, group_size).float().abs()
    if percentile == 1:
        largest = magnitudes.amax(1, keepdim=True)
    else:
        largest = torch.quantile(magnitudes, percentile, dim=1, keepdim=True)
    scale = largest / (-(2**n_bits) / 2)
    if not bool((scale.abs() < _LARGEST).all()):
        raise InputError("a group with NaN, an infinity or numbers that are too large has no finite scale in f16")
    return QScalePerGroupF16(group_size, scale, n_bits, percentile)


def fp_to_tract_q4_0_with_min_max_calibration(
    fp_tensor: torch.Tensor, percentile: float = 1.0
) -> QTensorTractScaleOnly:
    """A tensor as Q4_0. ``percentile``: as for `qscale_per_group_f16_min_max_calibration`.

    Raises InputError for shapes and numbers that Q4_0 has not.
    """
    QTensorTractScaleOnly.check(fp_tensor)
    scheme = qscale_per_group_f16_min_max_calibration(fp_tensor, 4, Q4_0.length, percentile)
    return QTensorTractScaleOnly(fp_tensor, scheme, fp_tensor.dtype)


def quantize_weights_q4_0(
    model: torch.nn.Module,
    tokenizer: Any = None,
    export_dirpath: Any = None,
    local_dir: Any = None,
    *,
    classes: Collection[type[torch.nn.Module]] = (torch.nn.Linear,),
    percentile: float = 1.0,
    **_: Any,
) -> torch.nn.Module:
    """Put Q4_0 in the place of the weights of layers of these classes, in the module itself, which is returned.

    A weight that several layers share is quantised once, and not at all where another class of layers has it too. What
    Q4_0 has no blocks for stays as it is; a warning, ModelWarning, names it. ``tokenizer``, ``export_dirpath`` and
    ``local_dir`` are for entries of registries that calibrate with data.
    """
    updater = ModTensorUpdater(model)
    users: dict[torch.Tensor, list[bool]] = {}
    names: dict[torch.Tensor, str] = {}
    for path, part in model.named_modules(remove_duplicate=False):
        for attribute, weight in part.named_parameters(recurse=False):
            users.setdefault(weight, []).append(attribute == "weight" and type(part) in classes)
            names.setdefault(weight, f"{path}.{attribute}" if path else attribute)
    left: list[str] = []
    for weight, wanted in users.items():
        if not all(wanted) or isinstance(weight, QTensor):
            continue
        try:
            quantised = fp_to_tract_q4_0_with_min_max_calibration(weight, percentile)
        except InputError as error:
            left.append(f"{names[weight]}: {error.problem}")
            continue
        updater.update_by_ref(weight, torch.nn.Parameter(quantised, requires_grad=False))
    if left:
        warnings.warn("weights stay as they are: " + "; ".join(left), ModelWarning, stacklevel=2)
    return model


Compression = Callable[..., torch.nn.Module]
"""``fn(model, tokenizer=, export_dirpath=, local_dir=, **others) -> model``."""

_EMBEDDINGS: Final = (torch.nn.Linear, torch.nn.Embedding)

DEFAULT_COMPRESSION: Final[Mapping[str, Compression]] = {
    "min_max_q4_0": quantize_weights_q4_0,
    "min_max_q4_0_with_embeddings": partial(quantize_weights_q4_0, classes=_EMBEDDINGS),
    "min_max_q4_0_with_embeddings_99": partial(quantize_weights_q4_0, classes=_EMBEDDINGS, percentile=0.99),
    "min_max_q4_0_all": partial(quantize_weights_q4_0, classes=(*_EMBEDDINGS, torch.nn.Conv1d, torch.nn.Conv2d)),
}


def dynamic_load_registry(path: str) -> Mapping[str, Compression]:
    """A registry by its dotted path, as ``tract_torch.weights.compress.DEFAULT_COMPRESSION``, which is imported.

    Raises InputError where there is none, or where it is no dictionary of functions.
    """
    module, _, name = of_type(path, str, "path", "the dotted path of a registry").rpartition(".")
    if not module:
        raise InputError(f"{path!r} is no dotted path of a registry, as 'package.module.REGISTRY'")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # what the module itself imports is missing
        raise InputError(f"there is no module {error.name!r}", where=path) from None
    except AttributeError:
        near = meant(name, dir(importlib.import_module(module)))
        hint = f"did you mean {near[0]!r}?" if near else None
        raise InputError(f"{module!r} has no {name!r}", where=path, hint=hint) from None
    if not isinstance(found, Mapping) or not all(map(callable, found.values())):
        raise InputError(f"it is a {type(found).__name__}, wanted a dictionary of functions", where=path)
    return found
