"""Regions of images, each brought to one size."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_nnef.nnef_only.roi import Method, RoiPool, RoiResample
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, STANDARD, fragments, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_ROI: Final = "input: tensor<scalar>, rois: tensor<scalar>, batch_index: tensor<integer>, output_size: integer[]"


@reads(ROWS, STANDARD, f"avg_roi_pool({_ROI}) -> (output: tensor<scalar>)")
@reads(ROWS, STANDARD, f"max_roi_pool({_ROI}) -> (output: tensor<scalar>)")
def read_roi_pool(call: Call) -> OutletId:
    """The mean, or the largest element, of each cell of each region."""
    op = RoiPool(*_size(call), largest=call.name == "max_roi_pool")
    return call.op(op, *_inputs(call))


@reads(ROWS, STANDARD, f"roi_resample({_ROI}, method: string = 'symmetric') -> (output: tensor<scalar>)")
def read_roi_resample(call: Call) -> OutletId:
    """Points of each region, interpolated."""
    method = call.member("method", Method)
    return call.op(RoiResample(*_size(call), method), *_inputs(call))


def _inputs(call: Call) -> tuple[OutletId, OutletId, OutletId]:
    x = call.real(call.input("input"))
    return x, call.input("rois", call.dtype(x)), call.input("batch_index", DatumType.I64)


def _size(call: Call) -> tuple[int, int]:
    found = call.integers("output_size")
    if len(found) != 2 or min(found) < 1:
        raise call.misfit("output_size", f"is {list(found)}", "a height and a width, 1 or more")
    return found[0], found[1]


fragments(
    ROWS,
    STANDARD,
    "\n".join(
        f"""
fragment {kind}_roi_align({_ROI}, sampling_rate: integer[], resize_method: string = 'symmetric')
    -> (output: tensor<scalar>)
{{
    points = [for i in range_of(output_size) yield output_size[i] * sampling_rate[i]];
    resized = roi_resample(input, rois, batch_index, output_size = points, method = resize_method);
    output = {kind}_pool(resized, size = [1, 1] + sampling_rate, stride = [1, 1] + sampling_rate);
}}
"""
        for kind in ("avg", "max")
    ),
)


@ROWS.row(NNEF_WRITE, RoiPool)
def write_roi_pool(op: RoiPool, node: Spelling) -> Invocation | None:
    """By the name of the standard."""
    return node.invoke(
        "max_roi_pool" if op.largest else "avg_roi_pool", *node.inputs, output_size=[op.height, op.width]
    )


@ROWS.row(NNEF_WRITE, RoiResample)
def write_roi_resample(op: RoiResample, node: Spelling) -> Invocation | None:
    """By the name of the standard."""
    return node.invoke("roi_resample", *node.inputs, output_size=[op.height, op.width], method=op.method.value)
