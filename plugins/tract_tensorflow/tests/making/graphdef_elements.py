"""Cases of graphs whose operators compute element by element, along axes, or sums of products."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from graphdef_drawn import Chance, family, floats, ints

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-6, -1e-6, 30.0, -30.0], np.float32)


@family
def elementwise(add):
    anywhere = "Abs Atan Asinh Ceil Cos Cosh Erf Erfc Exp Expm1 Floor Neg Relu Relu6 Rint Round Sigmoid Sign Sin"
    anywhere += " Sinh Softplus Softsign Square Tan Tanh Elu Selu LeakyRelu IsNan IsInf IsFinite"
    for op in anywhere.split():
        add(op, op, floats(3, 5))
        add(f"{op}_special", op, SPECIAL if op not in ("Cosh", "Sinh", "Exp", "Expm1", "Tan") else SPECIAL[:9])
        add(f"{op}_f64", op, floats(4, kind=np.float64)) if op != "Relu6" else None
    for op in ["Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Inv"]:
        add(op, op, floats(3, 5, low=0.1, high=5.0))
        add(f"{op}_small", op, np.array([1e-6, 1e-3, 0.5, 1.0, 20.0], np.float32))
    for op in ["Acos", "Asin", "Atanh"]:
        add(op, op, floats(3, 5, low=-0.9, high=0.9))
    add("Acosh", "Acosh", floats(7, low=1.0, high=9.0))
    for op in ["Abs", "Neg", "Sign", "Square", "Relu"]:
        add(f"{op}_i32", op, ints(2, 3))
    for op in ("IsNan", "IsInf", "IsFinite"):
        add(f"{op}_nothing", op, np.array([np.nan, np.inf, -np.inf, 0.0, 3.0], np.float32))
    add("LeakyRelu_alpha", "LeakyRelu", floats(6), alpha=0.01)
    add("LogicalNot", "LogicalNot", np.array([True, False, True]))
    add("Invert", "Invert", ints(5))
    add("Invert_u8", "Invert", ints(5, low=0, high=255, kind=np.uint8))
    for op in ("Identity", "StopGradient", "PreventGradient", "Snapshot"):
        add(op, op, floats(2, 2))
    add("CheckNumerics", "CheckNumerics", floats(2, 2), message="bad")
    add("IdentityN", "IdentityN", floats(2, 2), ints(3), lists="input")
    add("Bucketize", "Bucketize", floats(3, 4), boundaries=[-1.0, 0.0, 0.5])
    add("Bucketize_i32", "Bucketize", ints(5), boundaries=[-3.0, 0.0, 4.0])
    add("ClipByValue", "ClipByValue", floats(3, 4), np.float32(-0.5), np.float32(1.0))
    for kind in (np.float16, tf.bfloat16.as_numpy_dtype):
        for op in ["Relu", "Sigmoid", "Tanh", "Exp", "Softplus", "Elu", "Selu", "Softsign"]:
            add(f"{op}_{np.dtype(kind).name}", op, floats(3, 5, kind=kind))
    for count in (0, 1, 2):
        add(f"Relu_of_{count}", "Relu", floats(count, 3), free=(0,))


@family
def binary(add):
    for op in ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"]:
        add(op, op, floats(3, 4), floats(4))
        add(f"{op}_i32", op, ints(2, 1, 3), ints(4, 1))
        add(f"{op}_scalar", op, floats(3, 4), np.float32(1.5), fixed=(1,), free=(0,))
    for op in ["RealDiv", "Div", "DivNoNan", "MulNoNan", "Xdivy"]:
        add(op, op, floats(3, 4), floats(4, low=0.5))
        add(f"{op}_zero", op, np.array([0, 1, 0, -2], np.float32), np.array([1, 2, 3, 4], np.float32))
    add("DivNoNan_by_zero", "DivNoNan", np.array([0, 1, -3], np.float32), np.array([0, 0, 2], np.float32))
    add("MulNoNan_of_zero", "MulNoNan", np.array([np.inf, np.nan, -3], np.float32), np.array([0, 0, 2], np.float32))
    add("Xdivy_zero_zero", "Xdivy", np.array([0, 0, 3], np.float32), np.array([0, 5, 2], np.float32))
    add("Xlogy", "Xlogy", np.array([0, 1, 3], np.float32), np.array([0, 5, 2], np.float32))
    add("Xlog1py", "Xlog1py", np.array([0, 1, 3], np.float32), np.array([-1, 1e-6, 2], np.float32))
    signs = np.array([7, -7, 7, -7, 6, 0], np.int32), np.array([3, 3, -3, -3, 3, 5], np.int32)
    for op in ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod", "Div"]:
        add(f"{op}_signs", op, *signs)
        add(f"{op}_i64", op, *(one.astype(np.int64) for one in signs))
    for op in ["FloorDiv", "FloorMod", "Mod"]:
        add(f"{op}_f32", op, *(one.astype(np.float32) for one in signs))
    add("Pow", "Pow", floats(3, 4, low=0.1), floats(4))
    add("Pow_square", "Pow", floats(3, 4), np.float32(2), fixed=(1,))
    add("Pow_i32", "Pow", ints(5, low=1, high=5), ints(5, low=0, high=5))
    for op in ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]:
        add(op, op, ints(3, 4, low=0, high=3), ints(4, low=0, high=3))
        add(f"{op}_f32", op, floats(6), floats(6))
    add("Equal_bool", "Equal", np.array([True, False]), np.array([True, True]))
    add(
        "ApproximateEqual", "ApproximateEqual", np.array([1.0, 2.0], np.float32), np.array([1.0000001, 2.1], np.float32)
    )
    flags = np.array([[True], [False]]), np.array([True, False, True])
    for op in ["LogicalAnd", "LogicalOr"]:
        add(op, op, *flags)
    for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
        add(op, op, ints(6), ints(6))
        add(f"{op}_u8", op, ints(6, low=0, high=255, kind=np.uint8), ints(6, low=0, high=255, kind=np.uint8))
    for op in ("LeftShift", "RightShift"):
        add(op, op, ints(6), ints(6, low=0, high=5))
    y, x = np.meshgrid(np.array([-1, 0, 2], np.float32), np.array([-1, 0, 3], np.float32))
    add("Atan2", "Atan2", y, x)
    add("AddN", "AddN", floats(2, 3), floats(2, 3), floats(2, 3), lists="inputs")
    add("AddN_one", "AddN", floats(2, 3), lists="inputs")
    add("SelectV2", "SelectV2", np.array([True, False, True]), floats(2, 3), floats(3))
    add("Select", "Select", np.array([[True, False], [False, True]]), floats(2, 2), floats(2, 2))
    add("Select_rows", "Select", np.array([True, False]), floats(2, 3), floats(2, 3))
    add("Select_scalar", "Select", np.array(True), floats(2, 3), floats(2, 3))


@family
def cast(add):
    kinds = [tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.bool, tf.float16, tf.bfloat16, tf.int8]
    for source in kinds:
        for to in kinds:
            array = np.array([0, 1, 2, 5, 100], np.float32).astype(source.as_numpy_dtype)
            add(f"{source.name}_to_{to.name}", "Cast", array, DstT=to)
    add("truncates", "Cast", np.array([1.9, -1.9, 0.5, -0.5], np.float32), DstT=tf.int32)


@family
def einsum(add):
    for a in (False, True):
        for b in (False, True):
            shapes = ((4, 3) if a else (3, 4)), ((5, 4) if b else (4, 5))
            add(f"MatMul_{a}_{b}", "MatMul", floats(*shapes[0]), floats(*shapes[1]), transpose_a=a, transpose_b=b)
            add(
                f"BatchMatMulV2_{a}_{b}",
                "BatchMatMulV2",
                floats(2, *shapes[0]),
                floats(1, *shapes[1]),
                adj_x=a,
                adj_y=b,
            )
    add("MatMul_fixed", "MatMul", floats(2, 4), floats(4, 5), fixed=(1,), free=(0,))
    add("MatMul_i32", "MatMul", ints(2, 4), ints(4, 5))
    add("MatMul_f16", "MatMul", floats(2, 4, kind=np.float16), floats(4, 5, kind=np.float16))
    add("BatchMatMul", "BatchMatMul", floats(2, 3, 3, 4), floats(2, 3, 4, 5))
    add("BatchMatMulV3", "BatchMatMulV3", floats(3, 3, 4), floats(4, 5), Tout=tf.float32)
    for name, equation, *shapes in (
        ("matmul", "ij,jk->ik", (2, 3), (3, 4)),
        ("heads", "abc,cde->abde", (2, 3, 4), (4, 2, 5)),
        ("scores", "aecd,abcd->acbe", (2, 3, 2, 4), (2, 5, 2, 4)),
        ("values", "acbe,aecd->abcd", (2, 2, 5, 3), (2, 3, 2, 4)),
        ("ellipsis", "...ij,jk->...ik", (2, 2, 3), (3, 4)),
        ("sum", "ij->i", (2, 3)),
        ("transpose", "ij->ji", (2, 3)),
        ("outer", "i,j->ij", (2,), (3,)),
    ):
        add(f"Einsum_{name}", "Einsum", *(floats(*shape) for shape in shapes), lists="inputs", equation=equation)
    add("BiasAdd", "BiasAdd", floats(2, 3, 3, 4), floats(4))
    add("BiasAdd_2d", "BiasAdd", floats(2, 4), floats(4))
    add("BiasAdd_first", "BiasAdd", floats(2, 4, 3, 3), floats(4), data_format="NCHW")


@family
def reduce(add):
    for op in ["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"]:
        for keep in (False, True):
            for name, axes in (("last", [-1]), ("two", [0, 2]), ("none", []), ("all", [0, 1, 2])):
                add(f"{op}_{name}_{keep}", op, floats(2, 3, 4), np.array(axes, np.int32), fixed=(1,), keep_dims=keep)
        add(f"{op}_scalar_axis", op, floats(2, 3), np.int32(1), fixed=(1,), free=(0,))
        add(f"{op}_computed", op, floats(2, 3), np.array([1], np.int32))
    for op in ["Sum", "Prod", "Max", "Min", "Mean"]:
        add(f"{op}_i32", op, ints(2, 3, low=-4, high=5), np.array([1], np.int32), fixed=(1,))
    for op in ("All", "Any"):
        add(op, op, Chance.rng.random((3, 4)) > 0.4, np.array([1], np.int32), fixed=(1,))
    for op in ("ArgMax", "ArgMin"):
        add(op, op, floats(3, 4), np.int32(1), fixed=(1,))
        add(f"{op}_equal", op, np.ones((2, 3), np.float32), np.int32(-1), fixed=(1,), output_type=tf.int32)
    add("TopKV2", "TopKV2", floats(2, 7), np.int32(3), fixed=(1,))
    add("TopKV2_computed", "TopKV2", floats(2, 7), np.int32(2))
    add("TopKV2_i32", "TopKV2", ints(2, 7), np.int32(3), fixed=(1,))
    for exclusive in (False, True):
        for reverse in (False, True):
            for op in ("Cumsum", "Cumprod"):
                options = {"exclusive": exclusive, "reverse": reverse}
                add(f"{op}_{exclusive}_{reverse}", op, floats(3, 4), np.int32(1), fixed=(1,), **options)


@family
def quantize(add):
    for name, low, high in (("both", -3.0, 5.0), ("above", 0.0, 6.0), ("uneven", -0.37, 1.91)):
        for bits in (8, 4):
            for narrow in (False, True):
                options = {"num_bits": bits, "narrow_range": narrow}
                add(
                    f"Args_{name}_{bits}_{narrow}",
                    "FakeQuantWithMinMaxArgs",
                    floats(20, low=-7, high=7),
                    min=low,
                    max=high,
                    **options,
                )
                given = floats(20, low=-7, high=7), np.float32(low), np.float32(high)
                add(f"Vars_{name}_{bits}_{narrow}", "FakeQuantWithMinMaxVars", *given, fixed=(1, 2), **options)
    lows, highs = np.array([-1, -2, 0], np.float32), np.array([1, 3, 4], np.float32)
    add("PerChannel", "FakeQuantWithMinMaxVarsPerChannel", floats(4, 3, low=-5, high=5), lows, highs, fixed=(1, 2))


@family
def fft(add):
    for length in (8, 5, 6):
        add(f"RFFT_{length}", "RFFT", floats(2, 8), np.array([length], np.int32), fixed=(1,))
    half = (floats(2, 5) + 1j * floats(2, 5)).astype(np.complex64)
    for length in (8, 9):
        add(f"IRFFT_{length}", "IRFFT", half, np.array([length], np.int32), fixed=(1,))
    add("FFT", "FFT", half)
    add("IFFT", "IFFT", half)
    add("ComplexAbs", "ComplexAbs", half)
    add("Real", "Real", half)
    add("Imag", "Imag", half)
    add("Conj", "Conj", half)
    add("Complex", "Complex", floats(2, 3), floats(2, 3))


@family
def features(add):
    for squared in (False, True):
        options = {"window_size": 20, "stride": 8, "magnitude_squared": squared}
        add(f"AudioSpectrogram_{squared}", "AudioSpectrogram", floats(100, 1, low=-1, high=1), **options)
    energies = floats(1, 6, 129, low=0.0, high=4.0)
    add("Mfcc", "Mfcc", energies, np.int32(16000), fixed=(1,))
    options = {"upper_frequency_limit": 6000.0, "filterbank_channel_count": 20, "dct_coefficient_count": 8}
    add("Mfcc_options", "Mfcc", energies, np.int32(16000), fixed=(1,), **options)
