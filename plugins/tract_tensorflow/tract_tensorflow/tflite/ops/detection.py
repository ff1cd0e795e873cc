"""The end of detectors: boxes from what a network says of anchors."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import QUANTIZED, tflite_op
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.detection import DetectionPostProcess

ROWS = Rows()

_NAME = "custom/TFLite_Detection_PostProcess"
_LARGEST = 1 << 20


@tflite_op(ROWS, _NAME, QUANTIZED + _NAME)
def detections(node: TfliteNode, wire: Wiring) -> tuple[OutletId, ...]:
    """Boxes, classes and scores of the detections, and how many there are; what is quantised is made floats"""
    most, per_box = _size(node, "max_detections"), _size(node, "max_classes_per_detection")
    score, overlap = node.said_number("nms_score_threshold"), node.said_number("nms_iou_threshold")
    scales = [node.said_number(f"{axis}_scale") for axis in "yxhw"]
    if min(scales) <= 0 or most * per_box > _LARGEST:
        raise CorruptModel(f"{most} detections of {per_box} classes, in units of {scales}")
    y, x, h, w = scales
    op = DetectionPostProcess(
        most, per_box, _size(node, "detections_per_class", 100), bool(node.said_number("use_regular_nms", False)),
        _size(node, "num_classes"), score, overlap, (y, x, h, w),
    )  # fmt: skip
    return wire.ops(op, *(_floats(wire, slot).outlet for slot in range(3)))


def _size(node: TfliteNode, name: str, default: int | None = None) -> int:
    found = node.said_size(name, default)
    if not 0 < found <= _LARGEST:
        raise CorruptModel(f"option {name} of {node.op_type} is {found}, wanted 1 to {_LARGEST}")
    return found


def _floats(wire: Wiring, slot: int) -> Wired:
    x = wire.tensor(slot)
    if x.dtype.is_float():
        return x
    quantization = wire.node.quantization(slot)
    return (x.cast(DatumType.F32) - quantization.zero) * quantization.scale
