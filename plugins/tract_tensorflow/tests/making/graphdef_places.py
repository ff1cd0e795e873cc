"""Cases of graphs whose operators look at places: windows, slices, images."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from graphdef_drawn import Chance, family, floats, i32, ints


@family
def conv(add):
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            for size in (5, 6):
                add(
                    f"Conv2D_{padding}_{stride}_{size}",
                    "Conv2D",
                    floats(2, size, size + 1, 3),
                    floats(3, 2, 3, 4),
                    fixed=(1,),
                    strides=[1, stride, stride, 1],
                    padding=padding,
                )
                add(
                    f"Depthwise_{padding}_{stride}_{size}",
                    "DepthwiseConv2dNative",
                    floats(1, size, size, 3),
                    floats(3, 3, 3, 2),
                    fixed=(1,),
                    strides=[1, stride, stride, 1],
                    padding=padding,
                )
    plain = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    add("Conv2D_free", "Conv2D", floats(2, 5, 6, 3), floats(3, 3, 3, 4), fixed=(1,), free=(0,), **plain)
    add("Conv2D_computed", "Conv2D", floats(2, 5, 6, 3), floats(3, 3, 3, 4), **plain)
    add("Conv2D_dilated", "Conv2D", floats(1, 9, 9, 2), floats(3, 3, 2, 3), fixed=(1,), dilations=[1, 2, 3, 1], **plain)
    add("Conv2D_groups", "Conv2D", floats(1, 5, 5, 4), floats(3, 3, 2, 6), fixed=(1,), **plain)
    add(
        "Conv2D_point",
        "Conv2D",
        floats(1, 5, 5, 4),
        floats(1, 1, 4, 6),
        fixed=(1,),
        strides=[1, 2, 2, 1],
        padding="SAME",
    )
    add(
        "Conv2D_explicit",
        "Conv2D",
        floats(1, 5, 5, 2),
        floats(3, 3, 2, 3),
        fixed=(1,),
        strides=[1, 2, 2, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0],
    )
    add(
        "Depthwise_dilated",
        "DepthwiseConv2dNative",
        floats(1, 9, 9, 3),
        floats(3, 3, 3, 1),
        fixed=(1,),
        dilations=[1, 2, 2, 1],
        **plain,
    )
    for padding in ("SAME", "VALID"):
        of_windows(add, padding)


def of_windows(add, padding):
    add(
        f"Conv3D_{padding}",
        "Conv3D",
        floats(1, 4, 5, 6, 2),
        floats(2, 3, 2, 2, 3),
        fixed=(1,),
        strides=[1, 1, 2, 1, 1],
        padding=padding,
    )
    add(
        f"Dilation2D_{padding}",
        "Dilation2D",
        floats(1, 6, 7, 3),
        floats(3, 2, 3),
        strides=[1, 2, 1, 1],
        rates=[1, 1, 2, 1],
        padding=padding,
    )
    add(
        f"ExtractImagePatches_{padding}",
        "ExtractImagePatches",
        floats(2, 6, 7, 3),
        ksizes=[1, 3, 2, 1],
        strides=[1, 2, 1, 1],
        rates=[1, 1, 2, 1],
        padding=padding,
    )


@family
def deconv(add):
    for padding in ("SAME", "VALID"):
        for stride in (1, 2, 3):
            for kernel in (2, 3):
                size = 4
                written = size * stride if padding == "SAME" else (size - 1) * stride + kernel
                add(
                    f"{padding}_{stride}_{kernel}",
                    "Conv2DBackpropInput",
                    np.array([1, written, written, 2], np.int32),
                    floats(kernel, kernel, 2, 3),
                    floats(1, size, size, 3),
                    fixed=(0, 1),
                    strides=[1, stride, stride, 1],
                    padding=padding,
                )
    for written in (7, 8):
        add(
            f"to_{written}",
            "Conv2DBackpropInput",
            np.array([1, written, written, 2], np.int32),
            floats(3, 3, 2, 3),
            floats(1, 4, 4, 3),
            fixed=(0, 1),
            strides=[1, 2, 2, 1],
            padding="SAME",
        )
    add(
        "3d",
        "Conv3DBackpropInputV2",
        np.array([1, 6, 6, 6, 2], np.int32),
        floats(3, 3, 3, 2, 3),
        floats(1, 3, 3, 3, 3),
        fixed=(0, 1),
        strides=[1, 2, 2, 2, 1],
        padding="SAME",
    )


@family
def pool(add):
    for op in ("MaxPool", "AvgPool"):
        for padding in ("SAME", "VALID"):
            for size, stride in ((2, 2), (3, 1), (3, 2)):
                window = {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": padding}
                add(f"{op}_{padding}_{size}_{stride}", op, floats(2, 7, 8, 3), **window)
                add(f"{op}_{padding}_{size}_{stride}_free", op, floats(2, 7, 8, 3), free=(0,), **window)
            window = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": padding}
            add(f"{op}3D_{padding}", f"{op}3D", floats(1, 5, 6, 5, 2), **window)
    add(
        "MaxPoolV2",
        "MaxPoolV2",
        floats(1, 5, 5, 2),
        np.array([1, 2, 2, 1], np.int32),
        np.array([1, 2, 2, 1], np.int32),
        fixed=(1, 2),
        padding="SAME",
    )
    for batch in (False, True):
        add(
            f"MaxPoolWithArgmax_{batch}",
            "MaxPoolWithArgmax",
            floats(2, 5, 6, 3),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
            include_batch_in_index=batch,
        )


@family
def norm(add):
    parameters = floats(3), floats(3), floats(3), floats(3, low=0.1)
    add("FusedBatchNorm", "FusedBatchNorm", floats(2, 4, 4, 3), *parameters, fixed=(1, 2, 3, 4), is_training=False)
    add("FusedBatchNormV3", "FusedBatchNormV3", floats(2, 4, 4, 3), *parameters, is_training=False, epsilon=1e-3)
    add("LRN", "LRN", floats(2, 3, 3, 9))
    add("LRN_options", "LRN", floats(2, 3, 3, 9), depth_radius=2, bias=2.0, alpha=0.1, beta=0.75)
    add("L2Loss", "L2Loss", floats(3, 4))
    for op in ("Softmax", "LogSoftmax"):
        add(op, op, floats(3, 5))
        add(f"{op}_large", op, floats(2, 3, 4, low=-90, high=90))
        add(f"{op}_f16", op, floats(3, 5, kind=np.float16))


@family
def axis(add):
    add("Reshape", "Reshape", floats(2, 3, 4), i32(4, -1), fixed=(1,))
    add("Reshape_free", "Reshape", floats(2, 3, 4), i32(-1, 12), fixed=(1,), free=(0,))
    add("Reshape_zero", "Reshape", floats(0, 3), i32(3, 0), fixed=(1,))
    add("Reshape_i64", "Reshape", floats(2, 3, 4), np.array([6, 4]), fixed=(1,))
    add("Squeeze", "Squeeze", floats(1, 3, 1, 2))
    add("Squeeze_some", "Squeeze", floats(1, 3, 1, 2), axis=[-2])
    for place in (0, 1, -1):
        add(f"ExpandDims_{place}", "ExpandDims", floats(2, 3), np.int32(place), fixed=(1,))
    add("Transpose", "Transpose", floats(2, 3, 4), i32(2, 0, 1), fixed=(1,))
    add("Transpose_computed", "Transpose", floats(2, 3, 4), i32(2, 0, 1))
    add("InvertPermutation", "InvertPermutation", i32(2, 0, 1, 3))
    add("InvertPermutation_fixed", "InvertPermutation", i32(2, 0, 1, 3), fixed=(0,))
    for block in (1, 2, 3):
        add(f"SpaceToDepth_{block}", "SpaceToDepth", floats(2, 6, 6, 3), block_size=block) if block > 1 else None
        add(f"DepthToSpace_{block}", "DepthToSpace", floats(2, 2, 3, 36), block_size=block) if block > 1 else None
    add("SpaceToBatchND", "SpaceToBatchND", floats(2, 4, 6, 3), i32(2, 3), np.zeros((2, 2), np.int32), fixed=(1, 2))
    pads = np.array([[1, 0], [2, 1]], np.int32)
    add("SpaceToBatchND_pads", "SpaceToBatchND", floats(2, 3, 3, 3), i32(2, 3), pads, fixed=(1, 2))
    add("BatchToSpaceND", "BatchToSpaceND", floats(12, 2, 2, 3), i32(2, 3), np.zeros((2, 2), np.int32), fixed=(1, 2))
    add("BatchToSpaceND_crops", "BatchToSpaceND", floats(12, 2, 2, 3), i32(2, 3), pads, fixed=(1, 2))
    zeros = np.zeros((2, 2), np.int32)
    add("SpaceToBatch", "SpaceToBatch", floats(2, 4, 6, 3), zeros, fixed=(1,), block_size=2)
    add("BatchToSpace", "BatchToSpace", floats(8, 2, 3, 3), zeros, fixed=(1,), block_size=2)
    add("BroadcastTo", "BroadcastTo", floats(3, 1), i32(2, 3, 4), fixed=(1,))
    add("BroadcastTo_computed", "BroadcastTo", floats(3, 1), i32(2, 3, 4))
    add("BroadcastArgs", "BroadcastArgs", i32(3, 1), i32(2, 1, 4), fixed=(0, 1))
    add("BroadcastArgs_computed", "BroadcastArgs", i32(3, 1), i32(2, 1, 4))
    add("Tile", "Tile", floats(2, 3), i32(2, 2), fixed=(1,))
    add("Tile_computed", "Tile", floats(2, 3), i32(1, 3))
    add("Fill", "Fill", i32(2, 3), np.float32(1.5), fixed=(0, 1))
    add("Fill_computed", "Fill", i32(2, 3), np.float32(1.5))
    add("ZerosLike", "ZerosLike", floats(2, 3), free=(0,))
    add("OnesLike", "OnesLike", ints(2, 3))
    for op in ("Shape", "Size", "Rank"):
        add(op, op, floats(2, 3), free=(0,))
    add("Shape_i64", "Shape", floats(2, 3), out_type=tf.int64)
    add("ShapeN", "ShapeN", floats(2, 3), floats(4), lists="input")
    add("Range", "Range", np.int32(2), np.int32(11), np.int32(3), fixed=(0, 1, 2))
    add("Range_computed", "Range", np.int32(2), np.int32(11), np.int32(3))
    add("Range_back", "Range", np.int32(5), np.int32(-2), np.int32(-2))
    add("Range_f32", "Range", np.float32(0), np.float32(1), np.float32(0.25), fixed=(0, 1, 2))
    for count in (1, 2, 5):
        add(f"LinSpace_{count}", "LinSpace", np.float32(-1), np.float32(3), np.int32(count), fixed=(2,))


@family
def slices(add):
    x = floats(4, 5, 6)
    add("Slice", "Slice", x, i32(1, 0, 2), i32(2, -1, 3), fixed=(1, 2))
    add("Slice_free", "Slice", x, i32(1, 0, 2), i32(-1, 2, 3), fixed=(1, 2), free=(0,))
    add("Slice_computed", "Slice", x, i32(1, 0, 2), i32(2, 5, 3))
    masks = {
        "plain": ((0, 1, 2), (2, 4, 6), (1, 2, 3), {}),
        "negative": ((-3, 0, -2), (-1, -1, 6), (1, 1, 1), {}),
        "backwards": ((3, 4, 5), (0, -6, 1), (-1, -2, -2), {}),
        "begin_end": ((9, 9, 1), (9, 9, 4), (1, 1, 1), {"begin_mask": 3, "end_mask": 1 | 2}),
        "ellipsis": ((0, 0, 1), (0, 0, 3), (1, 1, 1), {"ellipsis_mask": 1, "end_mask": 2}),
        "ellipsis_end": ((1, 0), (3, 0), (1, 1), {"ellipsis_mask": 2}),
        "new_axis": ((0, 1, 0, 0), (0, 3, 2, 2), (1, 1, 1, 1), {"new_axis_mask": 1}),
        "shrink": ((1, 0, -1), (2, 5, 0), (1, 1, 1), {"shrink_axis_mask": 5}),
        "shrink_new": ((1, 0, 2), (2, 0, 4), (1, 1, 1), {"shrink_axis_mask": 1, "new_axis_mask": 2}),
        "few": ((1,), (3,), (1,), {}),
        "empty": ((3, 0, 0), (1, 5, 6), (1, 1, 1), {}),
        "beyond": ((-9, 0, 0), (99, 5, 6), (1, 1, 1), {}),
    }
    for name, (begin, end, strides, options) in masks.items():
        given = i32(*begin), i32(*end), i32(*strides)
        add(f"StridedSlice_{name}", "StridedSlice", x, *given, fixed=(1, 2, 3), **options)
    add("StridedSlice_free", "StridedSlice", x, i32(1), i32(-1), i32(1), fixed=(1, 2, 3), free=(0,))
    add("StridedSlice_computed", "StridedSlice", x, i32(1, -3), i32(3, -1), i32(1, 1), fixed=(3,))
    add(
        "StridedSlice_of_shape",
        "StridedSlice",
        i32(5, 6, 7),
        i32(1),
        i32(2),
        i32(1),
        fixed=(1, 2, 3),
        shrink_axis_mask=1,
    )
    add("StridedSlice_one_computed", "StridedSlice", x, i32(-2), i32(-1), i32(1), fixed=(3,), shrink_axis_mask=1)
    add("Split", "Split", np.int32(1), floats(2, 6), fixed=(0,), num_split=3)
    add("Split_free", "Split", np.int32(-1), floats(2, 6), fixed=(0,), free=(1,), num_split=2)
    add("SplitV", "SplitV", floats(2, 6), i32(1, -1, 2), np.int32(1), fixed=(1, 2), num_split=3)
    add("Unpack", "Unpack", floats(2, 3), num=3, axis=1)
    add("Unpack_last", "Unpack", floats(2, 3), num=3, axis=-1)
    add("Roll", "Roll", floats(3, 4), i32(1, -2), i32(0, 1), fixed=(1, 2))
    add("Roll_free", "Roll", floats(3, 4), i32(-1), i32(1), fixed=(1, 2), free=(0,))
    add("Roll_all", "Roll", floats(3), i32(3), i32(0), fixed=(1, 2))
    add("ReverseV2", "ReverseV2", floats(2, 3, 4), i32(0, -1), fixed=(1,))
    add("Reverse", "Reverse", floats(2, 3), np.array([False, True]), fixed=(1,))
    lengths = np.array([3, 0, 5], np.int32)
    add("ReverseSequence", "ReverseSequence", floats(3, 5, 2), lengths, seq_dim=1, batch_dim=0)
    add("ReverseSequence_first", "ReverseSequence", floats(5, 3), lengths.astype(np.int64), seq_dim=0, batch_dim=1)
    pads = np.array([[1, 2], [0, 1]], np.int32)
    add("Pad", "Pad", floats(2, 3), pads, fixed=(1,))
    add("Pad_free", "Pad", floats(2, 3), pads, fixed=(1,), free=(0,))
    add("Pad_computed", "Pad", floats(2, 3), pads)
    add("PadV2", "PadV2", floats(2, 3), pads, np.float32(7), fixed=(1, 2))
    add("PadV2_computed", "PadV2", floats(2, 3), pads, np.float32(7))
    for mode in ("REFLECT", "SYMMETRIC"):
        add(f"MirrorPad_{mode}", "MirrorPad", floats(3, 4), pads, fixed=(1,), mode=mode)
        add(f"MirrorPad_{mode}_free", "MirrorPad", floats(3, 4), pads, fixed=(1,), free=(0,), mode=mode)
    add("Pack", "Pack", floats(2, 3), floats(2, 3), lists="values", axis=1)
    add("Pack_last", "Pack", floats(2, 3), floats(2, 3), lists="values", axis=-1)
    add("Pack_scalars", "Pack", np.int32(3), np.int32(4), lists="values")


@family
def gather(add):
    places = np.array([[0, 2], [1, 1]], np.int32)
    add("Gather", "Gather", floats(3, 4), places)
    for place in (0, 1, -1):
        add(f"GatherV2_{place}", "GatherV2", floats(3, 4, 5), places, np.int32(place), fixed=(2,))
    add("GatherV2_batch", "GatherV2", floats(2, 4, 5), places, np.int32(1), fixed=(2,), batch_dims=1)
    add("GatherV2_batch_far", "GatherV2", floats(2, 4, 5), places, np.int32(2), fixed=(2,), batch_dims=1)
    add("GatherV2_scalar", "GatherV2", floats(3, 4), np.int64(1), np.int32(0), fixed=(1, 2))
    coordinates = np.array([[0, 1], [2, 3]], np.int32)
    add("GatherNd", "GatherNd", floats(3, 4, 5), coordinates)
    add("GatherNd_rows", "GatherNd", floats(3, 4), np.array([[[0]], [[2]]], np.int32))
    add("ScatterNd", "ScatterNd", coordinates, floats(2, 5), np.array([3, 4, 5], np.int32), fixed=(2,))
    segments = np.array([2, 0, -1, 2], np.int32)
    add("UnsortedSegmentSum", "UnsortedSegmentSum", floats(4, 3), segments, np.int32(3), fixed=(2,))
    add("UnsortedSegmentSum_computed", "UnsortedSegmentSum", floats(4), segments, np.int32(4))
    twice = np.array([[1], [1], [0]], np.int32)
    add("ScatterNd_twice", "ScatterNd", twice, floats(3), np.array([4], np.int32), fixed=(2,))
    for op in ["TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"]:
        add(op, op, floats(4), np.array([[1], [3]], np.int32), floats(2))
    for place in (-1, 0, 1):
        given = np.array([0, 2, -1, 5], np.int32), np.int32(3), np.float32(2), np.float32(-1)
        add(f"OneHot_{place}", "OneHot", *given, fixed=(1, 2, 3), axis=place) if place < 1 else None
        add(f"OneHot_2d_{place}", "OneHot", places, *given[1:], fixed=(1,), axis=place)
    add("Where", "Where", np.array([[True, False], [False, True], [True, True]]))
    add("Where_f32", "Where", np.array([0.0, 2.0, 0.0, -1.0], np.float32))
    add("Unique", "Unique", np.array([3, 1, 3, 2, 1], np.int32))
    add("UniqueWithCounts", "UniqueWithCounts", np.array([3, 1, 3, 2, 1], np.int64))
    band = floats(2, 4, 5)
    for lower, upper in ((0, 0), (1, 0), (-1, 0), (0, -1), (1, 2)):
        add(f"MatrixBandPart_{lower}_{upper}", "MatrixBandPart", band, np.int64(lower), np.int64(upper), fixed=(1, 2))
    add("MatrixDiag", "MatrixDiag", floats(2, 3))
    main = np.int32(0), np.int32(-1), np.int32(-1), np.float32(9)
    add("MatrixDiagV3", "MatrixDiagV3", floats(2, 3), *main, fixed=(1, 2, 3, 4))
    add("MatrixDiagPart", "MatrixDiagPart", floats(2, 3, 3))
    add("MatrixDiagPart_wide", "MatrixDiagPart", floats(2, 3, 5))
    add("MatrixDiagPartV3", "MatrixDiagPartV3", floats(4, 3), np.int32(0), np.float32(0), fixed=(1, 2))
    add("MatrixSetDiag", "MatrixSetDiag", floats(2, 3, 3), floats(2, 3))
    add("Diag", "Diag", floats(3))
    add("Diag_2d", "Diag", floats(2, 3))
    add("DiagPart", "DiagPart", floats(2, 3, 2, 3))


@family
def images(add):
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
        for align, half in ((False, False), (True, False), (False, True)):
            for size in ((9, 7), (3, 4), (5, 6)):
                add(
                    f"{op}_{align}_{half}_{size[0]}",
                    op,
                    floats(1, 5, 6, 2),
                    np.array(size, np.int32),
                    fixed=(1,),
                    align_corners=align,
                    half_pixel_centers=half,
                )
    add(
        "ResizeBilinear_u8",
        "ResizeBilinear",
        ints(1, 4, 4, 1, low=0, high=255, kind=np.uint8),
        np.array([8, 8], np.int32),
    )
    add("ResizeBilinear_computed", "ResizeBilinear", floats(1, 4, 4, 1), np.array([8, 3], np.int32))
    crops(add)
    suppressions(add)


def crops(add):
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.2, 0.3, 1.3, 0.8], [0.9, 0.9, 0.1, 0.2]], np.float32)
    which = np.array([0, 1, 1, 0], np.int32)
    for method in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 2)):
            add(
                f"CropAndResize_{method}_{size[0]}",
                "CropAndResize",
                floats(2, 6, 7, 3),
                boxes,
                which,
                np.array(size, np.int32),
                fixed=(3,),
                method=method,
                extrapolation_value=0.5,
            )


def suppressions(add):
    corners = Chance.rng.random((20, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + Chance.rng.random((20, 2)).astype(np.float32) * 0.5], 1)
    scores = Chance.rng.random(20).astype(np.float32)
    limits = np.float32(0.3), np.float32(0.2)
    add("NonMaxSuppressionV2", "NonMaxSuppressionV2", boxes, scores, np.int32(6), limits[0], fixed=(2, 3))
    add("NonMaxSuppressionV3", "NonMaxSuppressionV3", boxes, scores, np.int32(6), *limits, fixed=(2, 3, 4))
    for pad in (False, True):
        options = {"pad_to_max_output_size": pad}
        given = boxes, scores, np.int32(18), *limits
        add(f"NonMaxSuppressionV4_{pad}", "NonMaxSuppressionV4", *given, fixed=(2, 3, 4), **options)
        add(f"NonMaxSuppressionV5_{pad}", "NonMaxSuppressionV5", *given, np.float32(0), fixed=(2, 3, 4, 5), **options)
    for each, name in ((1, "shared"), (3, "own")):
        many = (
            np.repeat(boxes.reshape(2, 10, 1, 4), each, 2)
            + Chance.rng.random((2, 10, each, 1)).astype(np.float32) * 0.2
        )
        of_classes = Chance.rng.random((2, 10, 3)).astype(np.float32)
        for total in (5, 40):
            add(
                f"CombinedNonMaxSuppression_{name}_{total}",
                "CombinedNonMaxSuppression",
                many,
                of_classes,
                np.int32(4),
                np.int32(total),
                *limits,
                fixed=(2, 3, 4, 5),
            )
