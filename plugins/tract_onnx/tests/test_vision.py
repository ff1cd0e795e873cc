"""Regions, boxes, blocks and moved convolutions, against ONNX Runtime and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_agree import agrees, gives, is_refused
from onnx_check import run, single

from tract_core.errors import CorruptModel, FactError, RunError

RANDOM = np.random.default_rng(0)


def f32(*shape, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def regions(count, size):
    corners = RANDOM.uniform(-1, size + 1, (count, 2, 2))
    return np.sort(corners, axis=1).reshape(count, 4).astype(np.float32)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 3])
def test_roi_align(mode, transformation, samples):
    attributes = {"mode": mode, "coordinate_transformation_mode": transformation, "sampling_ratio": samples}
    inputs = [f32(2, 3, 9, 7, low=0.0), regions(5, 16), i64(0, 1, 1, 0, 1)]
    agrees("RoiAlign", inputs, output_height=2, output_width=3, spatial_scale=0.5, **attributes)


def test_roi_align_before_the_half_pixel():
    agrees("RoiAlign", [f32(1, 2, 6, 6), regions(3, 6), i64(0, 0, 0)], opset=10, output_height=2, output_width=2)


def test_a_region_in_an_image_that_is_not_there():
    model, given = single("RoiAlign", [f32(1, 1, 4, 4), regions(1, 4), i64(3)])
    with pytest.raises(RunError, match="a region is in image 3, there are 1"):
        run(model, given)


def test_max_roi_pool():
    rois = np.concatenate([i64(0, 1, 1, 0)[:, None], RANDOM.integers(0, 7, (4, 4))], axis=1).astype(np.float32)
    rois[:, 1:] = np.concatenate([np.minimum(rois[:, 1:3], rois[:, 3:]), np.maximum(rois[:, 1:3], rois[:, 3:])], 1)
    agrees("MaxRoiPool", [f32(2, 3, 8, 8), rois], pooled_shape=[3, 2], spatial_scale=0.7)


def test_max_roi_pool_wants_regions_of_five_numbers():
    is_refused(
        FactError, r"wants regions of shape \[R, 5\]", "MaxRoiPool", [f32(1, 1, 4, 4), f32(1, 4)], pooled_shape=[2, 2]
    )


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("threshold", [None, np.float32(0.4)])
def test_non_max_suppression(centred, threshold):
    boxes = f32(2, 30, 4, low=0.0) if centred else regions(60, 3).reshape(2, 30, 4)[:, :, [1, 0, 3, 2]]
    inputs = [boxes, f32(2, 3, 30, low=0.0), i64(6), np.array([0.3], np.float32), threshold]
    agrees("NonMaxSuppression", inputs, opset=11, center_point_box=centred)


def test_non_max_suppression_keeps_nothing_unless_told_how_much():
    gives([np.zeros((0, 3), np.int64)], "NonMaxSuppression", [f32(1, 4, 4), f32(1, 2, 4)], opset=11)


def test_boxes_and_scores_that_do_not_go_together():
    is_refused(
        FactError, r"scores of shape \[images, classes, boxes\]", "NonMaxSuppression", [f32(1, 4, 4), f32(1, 2, 5)]
    )


COL2IM = [
    {},
    {"strides": [2, 3]},
    {"dilations": [2, 1]},
    {"pads": [1, 0, 2, 1]},
]


@pytest.mark.parametrize("attributes", COL2IM, ids=str)
@pytest.mark.parametrize("fixed", [(1, 2), ()], ids=["constants", "inputs"])
def test_col2im(attributes, fixed):
    image, block = (7, 8), (3, 2)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0, 0, 0, 0])
    count = np.prod(
        [
            (image[axis] + pads[axis] + pads[axis + 2] - (block[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
            for axis in range(2)
        ]
    )
    inputs = [f32(2, 3 * 6, count), i64(*image), i64(*block)]
    agrees("Col2Im", inputs, opset=18, fixed=fixed, **attributes)


def test_columns_that_do_not_fill_the_image():
    model, given = single("Col2Im", [f32(1, 4, 5), i64(3, 3), i64(2, 2)], opset=18)
    with pytest.raises(RunError, match=r"blocks of \[2, 2\] fit \[2, 2\] times into \[3, 3\]; 5 of 4 elements"):
        run(model, given)


def test_columns_without_whole_blocks():
    is_refused(
        FactError, "do not hold whole blocks", "Col2Im", [f32(1, 5, 4), i64(3, 3), i64(2, 2)], opset=18, fixed=(1, 2)
    )


def deformed(x, kernel, offset, bias, mask, *, stride, pad, dilation, group, offset_group):
    """One output element after the other, in f64."""
    items, channels = x.shape[:2]
    outputs, per_group, height, width = kernel.shape
    found = np.zeros((items, outputs, *offset.shape[2:]))
    for n, o, i, j in np.ndindex(found.shape):
        total = bias[o]
        for c, k, l in np.ndindex(per_group, height, width):
            channel = o // (outputs // group) * per_group + c
            place = (channel // (channels // offset_group) * height + k) * width + l
            y, across = offset[n, 2 * place : 2 * place + 2, i, j]
            y, across = y + i * stride - pad + k * dilation, across + j * stride - pad + l * dilation
            value = 0.0
            for a, b in np.ndindex(2, 2):
                row, column = int(np.floor(y)) + a, int(np.floor(across)) + b
                if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                    weight = (1 - abs(y - row)) * (1 - abs(across - column))
                    value += weight * x[n, channel, row, column]
            total += kernel[o, c, k, l] * value * mask[n, place, i, j]
        found[n, o, i, j] = total
    return found


@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "group", "offset_group"), [(1, 0, 1, 1, 1), (2, 1, 1, 2, 2), (1, 2, 2, 2, 1)]
)
def test_deform_conv(stride, pad, dilation, group, offset_group):
    x, kernel, bias = f32(2, 4, 6, 5), f32(4, 4 // group, 2, 3), f32(4)
    out = [(x.shape[2 + a] + 2 * pad - (kernel.shape[2 + a] - 1) * dilation - 1) // stride + 1 for a in range(2)]
    offset, mask = f32(2, offset_group * 12, *out, low=-2.0, high=2.0), f32(2, offset_group * 6, *out)
    how = {"stride": stride, "pad": pad, "dilation": dilation, "group": group, "offset_group": offset_group}
    wanted = deformed(x, kernel, offset, bias, mask, **how)
    attributes = {
        "strides": [stride] * 2,
        "pads": [pad] * 4,
        "dilations": [dilation] * 2,
        "group": group,
        "offset_group": offset_group,
    }
    inputs = [x, kernel, offset, bias, mask]
    gives([wanted.astype(np.float32)], "DeformConv", inputs, opset=19, relative=1e-5, **attributes)
    plain = deformed(x, kernel, offset, np.zeros(4), np.ones_like(mask), **how)
    gives([plain.astype(np.float32)], "DeformConv", inputs[:3], opset=19, relative=1e-5, **attributes)


def test_offsets_that_do_not_fit_the_kernel():
    inputs = [f32(1, 1, 4, 4), f32(1, 1, 2, 2), f32(1, 7, 3, 3)]
    is_refused(
        FactError, r"offsets or factors of shape \[1, 8, 3, 3\], found 1,7,3,3,f32", "DeformConv", inputs, opset=19
    )


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 1, 4, 5)])
def test_affine_grid(aligned, size):
    axes = len(size) - 2
    theta = f32(2, axes, axes + 1)
    for fixed in ((1,), ()):
        if 1 in size[2:] and aligned:
            lines = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in size[2:]]
            places = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(size[2:])], -1)
            wanted = np.einsum("...k,njk->n...j", places, theta).astype(np.float32)
            gives([wanted], "AffineGrid", [theta, i64(*size)], opset=20, fixed=fixed, align_corners=1)
        else:
            agrees("AffineGrid", [theta, i64(*size)], opset=20, fixed=fixed, align_corners=aligned)


def test_maps_that_do_not_fit_the_size():
    inputs = [f32(1, 2, 3), i64(1, 1, 2, 2, 2)]
    is_refused(FactError, r"maps of shape \[N, 3, 4\], found 1,2,3,f32", "AffineGrid", inputs, opset=20)


def test_center_crop_pad():
    agrees("CenterCropPad", [f32(5, 8, 3), i64(7, 4)], opset=18, axes=[0, 1])


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 6, 5), (1, 2, 4, 5, 6)])
def test_places_of_max_pool_in_either_order(order, shape):
    kernel = [2] * (len(shape) - 2)
    agrees("MaxPool", [f32(*shape)], opset=12, outputs=2, kernel_shape=kernel, strides=kernel, storage_order=order)


def test_max_unpool_takes_max_pool_back():
    x = f32(2, 3, 6, 4, low=0.5)
    pooled, places = run(*single("MaxPool", [x], outputs=2, kernel_shape=[2, 2], strides=[2, 2]))
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    wanted = np.where(np.isin(np.arange(x.size).reshape(x.shape), places), x, 0)
    gives([wanted], "MaxUnpool", [pooled, places], opset=11, **window)
    larger = np.pad(wanted, ((0, 0), (0, 0), (0, 1), (0, 2)))
    for fixed in ((2,), ()):
        gives([larger], "MaxUnpool", [pooled, places, i64(2, 3, 7, 6)], opset=11, fixed=fixed, **window)


def test_pads_that_leave_nothing():
    inputs = [f32(1, 1, 1), i64(0).reshape(1, 1, 1)]
    is_refused(CorruptModel, r"pads \[1, 1\] leave nothing", "MaxUnpool", inputs, kernel_shape=[2], pads=[1, 1])


def test_the_oldest_upsample():
    wanted = np.repeat(np.repeat(x := f32(1, 2, 2, 3), 2, axis=2), 3, axis=3)
    gives([wanted], "Upsample", [x], opset=6, height_scale=2.0, width_scale=3.0)
