"""Networks in eight bits, as ONNX Runtime's tool writes them, which is imported where one is built."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from networks.builder import Network


class _Once:
    """The inputs that the network is measured on are those that its ranges are found with."""

    def __init__(self, inputs: dict[str, np.ndarray]) -> None:
        self._left: Iterator[dict[str, np.ndarray]] = iter([inputs])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)


def static(build: Callable[..., Network], *, pairs: bool = True, **sizes: Any) -> Network:
    """Activations as u8 with one scale for a tensor, weights as i8 with one for each output channel.

    ``pairs``: written as pairs of QuantizeLinear and DequantizeLinear around operators on real numbers, else as
    QLinearConv and the like.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    kind = QuantFormat.QDQ if pairs else QuantFormat.QOperator

    def write(given: Path, result: Path, network: Network) -> None:
        quantize_static(
            given,
            result,
            _Once(network.inputs),
            quant_format=kind,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )

    return _written(build(**sizes), write)


def dynamic(build: Callable[..., Network], **sizes: Any) -> Network:
    """Weights as i8, one scale each; what they are multiplied with is quantised in each run, by its own range."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    def write(given: Path, result: Path, network: Network) -> None:
        quantize_dynamic(given, result, weight_type=QuantType.QInt8)

    return _written(build(**sizes), write)


def _written(network: Network, write: Callable[[Path, Path, Network], None]) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "given.onnx", Path(folder) / "result.onnx"
        onnx.save(network.model, given)
        write(given, result, network)
        return Network(onnx.load(result), network.inputs)
