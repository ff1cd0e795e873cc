"""What is measured: networks of the usual families, with the sizes to measure and small ones to check results with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from exact import exact_outputs

import tract_core as tract
from networks import quantized, signals, transformers, vision
from networks.builder import Network
from tract_core.model.typed import TypedModel


@dataclass(frozen=True)
class Workload:
    """A network to measure.

    ``small``: arguments of ``build`` under which it runs in moments, still with all its kinds of layers. ``exact``:
    whether results are compared with those in float64; else, as for a network that rounds to few bits on its way, with
    those of ONNX Runtime without any optimisation. ``tolerance``: the largest difference allowed, relative to the
    largest number of the output; results of our own are held to a tenth of it where they are compared with float64, as
    no operator of ours may trade precision for speed without being asked. ``precision``: in which engines are told to
    compute floats.
    """

    name: str
    build: Callable[..., Network]
    small: dict[str, Any] = field(default_factory=dict)
    exact: bool = True
    tolerance: float = 1e-3
    precision: str = "f32"

    def allowed(self, *, ours: bool) -> float:
        """The largest difference that results may have: those of our own, or of another engine."""
        strict = ours and self.exact and self.precision == "f32"
        return self.tolerance / 10 if strict else self.tolerance

    def loaded(self, network: Network) -> tuple[TypedModel, list[np.ndarray]]:
        """The model of a network that it built, its floats in ``precision``, and the inputs, in order."""
        model = tract.onnx().load_bytes(network.model.SerializeToString()).into_model()
        if self.precision != "f32":
            model.transform(tract.FloatPrecision("f32", self.precision))
        typed: Any = model.typed
        return typed, [network.inputs[typed.outlet_name(outlet)] for outlet in typed.inputs]

    def files(self, folder: Path, *, small: bool) -> tuple[Path, Path]:
        """The model, and its inputs with what must come out; written to ``folder`` the first time."""
        folder /= _digest_of_the_sources()
        name = f"{self.name}-small" if small else self.name
        model, data = folder / f"{name}.onnx", folder / f"{name}.npz"
        if not data.exists():
            folder.mkdir(parents=True, exist_ok=True)
            network = self.build(**self.small if small else {})
            onnx.save(network.model, model)
            inputs = {f"input {name}": array for name, array in network.inputs.items()}
            wanted = exact_outputs(network.model, network.inputs) if self.exact else _plain(model, network.inputs)
            np.savez(data, **inputs, **{f"output {name}": array for name, array in wanted.items()})
        return model, data


def _plain(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime  # as networks are also built where it does not run

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@cache
def _digest_of_the_sources() -> str:
    """Models that were written by other sources than these are others."""
    here = Path(__file__).parent
    sources = [Path(__file__), *sorted((here / "networks").glob("*.py"))]
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


WORKLOADS = (
    Workload("MobileNetV2", vision.mobilenet_v2, {"size": 32, "stages": 3}),
    Workload("ResNet-50", vision.resnet50, {"size": 32, "stages": 2}),
    Workload(  # the output has 8 bits; sums that are rounded in other ways may change it by some steps of a hundredth
        "ResNet-50 int8",
        partial(quantized.static, vision.resnet50),
        {"size": 32, "stages": 2},
        exact=False,
        tolerance=0.05,
    ),
    Workload("VGG-style", vision.vgg, {"size": 16, "widths": (16, 32, 0, 48)}),
    Workload("EfficientNet", vision.efficientnet, {"size": 32, "stages": 3}),
    Workload("U-Net", vision.unet, {"size": 16, "widths": (8, 16, 24)}),
    Workload("BERT-base", transformers.bert, {"tokens": 16, "depth": 2, "width": 128, "vocabulary": 50}),
    Workload(  # numbers have 8 bits, through twelve layers
        "BERT-base bf16",
        transformers.bert,
        {"tokens": 16, "depth": 2, "width": 128, "vocabulary": 50},
        tolerance=0.1,
        precision="bf16",
    ),
    Workload(  # a number that is rounded to the next step changes the range, and so the steps, of all that follows
        "BERT-base int8",
        partial(quantized.dynamic, transformers.bert),
        {"tokens": 16, "depth": 2, "width": 128, "vocabulary": 50},
        exact=False,
        tolerance=0.2,
    ),
    Workload("ViT", transformers.vision_transformer, {"size": 48, "depth": 2, "width": 128}),
    Workload("speech encoder", transformers.speech_encoder, {"frames": 31, "depth": 2, "width": 128}),
    Workload("keyword spotter", signals.keyword_spotter, {"frames": 33, "layers": 3}),
    Workload("causal 1-D", signals.causal_depthwise, {"frames": 33, "width": 24, "layers": 3}),
    Workload("LSTM", signals.lstm, {"steps": 9, "hidden": 24}),
    Workload("bidirectional GRU", signals.bidirectional_gru, {"steps": 9, "hidden": 24}),
    Workload(
        "Llama step", transformers.llama_step, {"past": 9, "depth": 2, "heads": 4, "kv_heads": 2, "vocabulary": 50}
    ),
    *(Workload(f"policy, {rows} row{'s'[: rows - 1]}", partial(signals.policy, rows)) for rows in (1, 32, 1024)),
)
