"""Every operator and fragment that the standard declares, in version 1.0.5, is there."""

from __future__ import annotations

from tract_nnef.documents.operators import declaration
from tract_nnef.registry import NNEF, STANDARD, row_key

from tract_core.plugins import default_registry

NAMES = """
external variable constant update
reshape transpose concat split slice squeeze unsqueeze stack unstack tile pad gather cast
add sub mul div pow exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh abs sign rcp neg copy
lt gt le ge eq ne and or not floor ceil round select sqr sqrt rsqr rsqrt log2 min max clamp matmul
conv deconv box debox argmax_pool sample desample
nearest_downsample area_downsample nearest_upsample multilinear_upsample
sum_reduce max_reduce min_reduce argmax_reduce argmin_reduce any_reduce all_reduce mean_reduce moments
relu sigmoid softabs softmax softplus elu selu gelu silu prelu leaky_relu
max_pool_with_index max_pool avg_pool rms_pool linear separable_conv separable_deconv
local_response_normalization local_mean_normalization local_variance_normalization local_contrast_normalization
l1_normalization l2_normalization batch_normalization
avg_roi_pool max_roi_pool roi_resample avg_roi_align max_roi_align
min_max_linear_quantize zero_point_linear_quantize linear_quantize logarithmic_quantize copy_n add_n
"""

PARAMETERS = {
    "variable": "label shape",
    "reshape": "input shape axis_start axis_count",
    "slice": "input axes begin end stride",
    "pad": "input padding border value",
    "gather": "input indices axis",
    "split": "value axis ratios",
    "unstack": "value axis",
    "select": "condition true_value false_value",
    "clamp": "x a b",
    "matmul": "A B transposeA transposeB",
    "conv": "input filter bias border padding stride dilation groups",
    "deconv": "input filter bias border padding stride dilation output_shape groups",
    "box": "input size border padding stride dilation normalize",
    "debox": "input size border padding stride dilation output_shape normalize",
    "sample": "input index size border padding stride dilation",
    "desample": "input index size border padding stride dilation output_shape",
    "multilinear_upsample": "input factor method border",
    "sum_reduce": "input axes normalize",
    "softmax": "x axes",
    "selu": "x alpha lambda",
    "linear": "input filter bias",
    "separable_conv": "input plane_filter point_filter bias border padding stride dilation groups",
    "separable_deconv": "input plane_filter point_filter bias border padding stride dilation output_shape groups",
    "local_response_normalization": "input size alpha beta bias",
    "local_variance_normalization": "input size bias epsilon",
    "l2_normalization": "input axes bias epsilon",
    "batch_normalization": "input mean variance offset scale epsilon",
    "avg_roi_align": "input rois batch_index output_size sampling_rate resize_method",
    "min_max_linear_quantize": "x min max bits signed symmetric",
    "zero_point_linear_quantize": "x zero_point scale bits signed symmetric",
}


def test_every_name_of_the_standard_has_a_row() -> None:
    table = default_registry()[NNEF]
    assert [name for name in NAMES.split() if table.find(row_key(STANDARD, name)) is None] == []


def test_parameters_have_the_names_and_the_order_of_the_standard() -> None:
    table = default_registry()[NNEF]
    found = {name: declaration(table[row_key(STANDARD, name)].declaration) for name in PARAMETERS}
    assert {name: " ".join(one.name for one in it.parameters) for name, it in found.items()} == PARAMETERS
