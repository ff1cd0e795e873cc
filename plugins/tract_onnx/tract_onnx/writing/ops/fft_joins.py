"""The half of a Fourier transform that says all of a real signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import onnx

from tract_onnx.writing.joining import JoinFn, Site, told


def one_side(site: Site) -> Sequence[onnx.NodeProto] | None:
    """STFT and DFT of a real signal, of whose frequencies the first half is kept"""
    if len(site.inputs) != 4:
        return None
    start, end, axes = (site.ints(name) for name in site.inputs[1:])
    maker = site.made_by("STFT", site.inputs[0]) or site.made_by("DFT", site.inputs[0])
    if (
        maker is None
        or start != [0]
        or not end
        or not axes
        or told(maker).get("onesided")
        or told(maker).get("inverse")
    ):
        return None
    signal, made = site.fact(maker.input[0]), site.fact(site.inputs[0])
    if signal is None or made is None or signal.shape[-1] != 1 or axes[0] != _axis(site, maker):
        return None
    size = made.shape[axes[0]]
    if not isinstance(size, int) or end[0] != size // 2 + 1:
        return None
    return site.instead(maker.op_type, *maker.input, **{**told(maker), "onesided": 1})


def _axis(site: Site, node: onnx.NodeProto) -> int | None:
    """The axis of the frequencies."""
    if node.op_type == "STFT":
        return 2
    axes = site.ints(node.input[2]) if len(node.input) > 2 else [told(node)["axis"]]
    return axes[0] if axes else None


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (("Slice", one_side),)
