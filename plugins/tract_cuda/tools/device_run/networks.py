"""The networks of the bench, with other batches and element types; what a part `networks` compares them with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import tract_core as tract

sys.path.insert(0, str(Path(__file__).parents[4] / "bench"))
from device_run.setting import Setting
from networks import signals, transformers, vision
from networks.builder import Network

Arrays = dict[str, np.ndarray]

_TINY_BERT = {"tokens": 16, "depth": 1, "width": 64, "vocabulary": 50}


def _static_int8(**sizes: Any) -> Network:
    from networks import quantized  # it needs ONNX Runtime, which quantises

    return quantized.static(vision.resnet50, **sizes)


NETWORKS: dict[str, tuple[Callable[..., Network], dict[str, Any]]] = {
    "ResNet-50": (vision.resnet50, {"size": 16, "stages": 1}),
    "BERT-base": (transformers.bert, _TINY_BERT),
    "MobileNetV2": (vision.mobilenet_v2, {"size": 16, "stages": 2}),
    "EfficientNet": (vision.efficientnet, {"size": 16, "stages": 2}),
    "VGG-style": (vision.vgg, {"size": 8, "widths": (8, 0, 8)}),
    "U-Net": (vision.unet, {"size": 8, "widths": (4, 8)}),
    "ViT": (transformers.vision_transformer, {"size": 32, "depth": 1, "width": 64}),
    "speech encoder": (transformers.speech_encoder, {"frames": 9, "depth": 1, "width": 64}),
    "keyword spotter": (signals.keyword_spotter, {"frames": 9, "layers": 2}),
    "causal 1-D": (signals.causal_depthwise, {"frames": 9, "width": 8, "layers": 2}),
    "LSTM": (signals.lstm, {"steps": 3, "hidden": 8}),
    "bidirectional GRU": (signals.bidirectional_gru, {"steps": 3, "hidden": 8}),
    "Llama step": (transformers.llama_step, {"past": 5, "depth": 1, "heads": 2, "kv_heads": 1, "vocabulary": 20}),
    "ResNet-50 int8": (_static_int8, {"size": 16, "stages": 1}),
    **{f"policy, {rows}": (partial(signals.policy, rows), {"sizes": (8, 16, 4)}) for rows in (1, 32, 1024)},
}
"""By name, what builds a network, and arguments under which it is small. The first ones are of most interest."""

SMALL = ("VGG-style", "policy, 1")
"""Which of them a small run goes through."""

_NO_BATCH = ("ViT", "Llama step", "LSTM", "bidirectional GRU", "ResNet-50 int8")

ONE_ROW = frozenset((*_NO_BATCH, "policy, 1", "policy, 32", "policy, 1024"))
"""Those whose graph says a batch of 1, or which have a batch of their own."""


def names(setting: Setting) -> list[str]:
    """The networks that a part goes through."""
    return setting.wanted(SMALL if setting.small and not setting.only else tuple(NETWORKS))


@cache
def network(name: str, small: bool, batch: int = 1) -> Network:
    """A network for so many rows. Raises ValueError where its graph is for one row only."""
    build, sizes = NETWORKS[name]
    found = build(**sizes if small else {})
    if batch == 1:
        return found
    if name in ONE_ROW:
        raise ValueError("its graph is for one batch")
    inputs = {key: _repeated(array, batch) for key, array in found.inputs.items()}
    model = onnx.ModelProto()
    model.CopyFrom(found.model)
    for value in model.graph.input:
        if value.name in inputs:
            value.type.tensor_type.shape.dim[0].dim_value = batch
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return Network(model, inputs)


def _repeated(array: np.ndarray, batch: int) -> np.ndarray:
    """Other numbers in each row; integers, which choose rows of tables, as they are."""
    found = np.repeat(array, batch, axis=0)
    if found.dtype.kind != "f":
        return found
    scale = np.linspace(0.5, 1.5, batch, dtype=found.dtype).reshape(batch, *(1,) * (found.ndim - 1))
    return found * scale


def typed(one: Network, precision: str = "f32") -> Any:
    """A network as a model of ours, its floats of a type."""
    model = tract.onnx().load_bytes(one.model.SerializeToString()).into_model()
    if precision not in ("f32", "tf32"):
        model.transform(tract.FloatPrecision("f32", precision))
    return model


def prepared(one: Network, runtime: str, precision: str = "f32") -> tuple[Any, list[np.ndarray]]:
    """A network on a runtime of ours, and its inputs, in order."""
    options = {"tf32": True} if precision == "tf32" and runtime == "cuda" else {}
    runnable = tract.runtime_for_name(runtime, **options).prepare(typed(one, precision))
    given = [one.inputs[runnable.input_name(slot)] for slot in range(runnable.input_count())]
    half = {np.dtype(np.float32): np.dtype(np.float16)} if precision == "f16" else {}
    return runnable, [array.astype(half.get(array.dtype, array.dtype)) for array in given]


@cache
def wanted(name: str, small: bool, batch: int = 1) -> tuple[str, list[np.ndarray]]:
    """Whose results, and these: of ONNX Runtime on the CPU without optimisations, else of our node executor."""
    one = network(name, small, batch)
    try:
        import onnxruntime
    except ImportError:
        runnable, given = prepared(one, "reference")
        return "reference", _arrays(runnable.run(given))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(one.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return "ONNX Runtime", [np.asarray(array) for array in session.run(None, one.inputs)]


def difference(found: Sequence[Any], right: Sequence[np.ndarray]) -> float:
    """The largest one, relative to the largest number of the output where it is; infinite where a number is none."""
    pairs = [(np.asarray(a).astype(np.float64), b.astype(np.float64)) for a, b in zip(found, right, strict=True)]
    if any(a.shape != b.shape for a, b in pairs):
        raise ValueError(f"outputs have the shapes {[a.shape for a, _ in pairs]}, wanted {[b.shape for _, b in pairs]}")
    if not all(np.isfinite(a).all() for a, _ in pairs):
        return float("inf")
    return max(float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)) for a, b in pairs)


def _arrays(tensors: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(tensor.view()) for tensor in tensors]


def run(setting: Setting) -> None:
    """The largest differences of networks, in each precision, from another engine."""
    for name in names(setting):
        for precision in ("f32",) if setting.small else ("f32", "tf32", "f16"):
            if precision != "f32" and "int8" in name:
                continue
            setting.attempt(f"{name} {precision}", partial(_compared, setting, name, precision))


def _compared(setting: Setting, name: str, precision: str) -> dict[str, Any]:
    assert setting.device  # what it is called comes into the report
    beside, right = wanted(name, setting.small)
    runnable, given = prepared(network(name, setting.small), "cuda", precision)
    found = _arrays(runnable.run(given))
    hosted = sorted({op for one in runnable.explain().placements if one.where == "cpu" for op in one.ops})
    again = _arrays(runnable.run(given))
    same = all(a.tobytes() == b.tobytes() for a, b in zip(found, again, strict=True))
    return {
        "difference": difference(found, right),
        "beside": beside,
        "same bits again": same,
        "on the host": ", ".join(hosted) or "nothing",
    }
