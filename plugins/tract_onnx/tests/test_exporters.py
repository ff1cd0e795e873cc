"""Graphs as exporters write them, where the standard leaves more open than most files make use of."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_check import assert_close, expected, load, run

from tract_core.errors import InputError, RunError
from tract_core.runtime.plan import TypedSimplePlan


def model_of(text, opset=21):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')


def same_as_onnxruntime(model, *feeds):
    """As wired and decluttered, one plan for all runs."""
    for declutter in (False, True):
        for given in feeds:
            assert_close(run(model, given, declutter=declutter), expected(model, given))


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

SLICES = """f (float[A,B,C] x, int64[S] from, int64[S] to{more}) => (float[] y) {{
    y = Slice (x, from, to{arguments})
}}"""


def slices(steps=False):
    more, arguments = (", int64[S] step", ", , step") if steps else ("", "")
    return model_of(SLICES.format(more=more, arguments=arguments))


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("bounds", [((), ()), ((1,), (2,)), ((0, -2), (1, 9)), ((0, 1, 2), (2, 2, 4))])
def test_how_many_axes_are_sliced_is_found_in_the_run(bounds):
    # EmbeddingBag, as PyTorch writes it: both bounds are slices of a list, of one element or none.
    starts, ends = (ints(*values) for values in bounds)
    model = slices()
    same_as_onnxruntime(model, {"x": X, "from": starts, "to": ends})


def test_steps_of_axes_whose_number_is_found_in_the_run():
    for starts, ends, steps in ((ints(2, 2), ints(0, 0), ints(-1, -2)), (ints(0), ints(2), ints(2))):
        cut = X[tuple(slice(*bounds) for bounds in zip(starts, ends, steps, strict=True))]
        given = {"x": X, "from": starts, "to": ends, "step": steps}
        for declutter in (False, True):
            assert_close(run(slices(steps=True), given, declutter=declutter), [cut])


def test_bounds_of_known_axes_whose_number_is_found_in_the_run():
    # CropAndResize, as tf2onnx writes it.
    model = model_of(
        """f (float[A,B,C] x, int64[S] from, int64[T] to) => (float[] y) {
            axes = Constant<value_ints: ints = [1]>()
            y = Slice (x, from, to, axes)
        }"""
    )
    same_as_onnxruntime(model, {"x": X, "from": ints(1), "to": ints(3)})
    for starts in (ints(), ints(0, 1)):
        with pytest.raises(InputError, match=f"size S must be 1; S is {len(starts)}"):
            run(model, {"x": X, "from": starts, "to": ints(3)})


def test_more_axes_are_sliced_than_there_are():
    with pytest.raises(RunError):
        run(slices(), {"x": X, "from": ints(0, 0, 0, 0), "to": ints(1, 1, 1, 1)})


def test_a_grid_from_counted_positions():
    # torch.arange and torch.meshgrid before version 11, when there was no Range.
    model = model_of(
        """f (float[N,2,H,W] x) => (float[] y) {
            s = Shape (x)
            two = Constant<value_ints: ints = [2]>()
            three = Constant<value_ints: ints = [3]>()
            h = Gather (s, two)
            w = Gather (s, three)
            ones_h = ConstantOfShape<value: tensor = int64[1] {1}>(h)
            ones_w = ConstantOfShape<value: tensor = int64[1] {1}>(w)
            rows = NonZero (ones_h)
            columns = NonZero (ones_w)
            size = Concat<axis: int = 0>(h, w)
            column = Transpose<perm: ints = [1, 0]>(rows)
            a = Expand (columns, size)
            b = Expand (column, size)
            zero = Constant<value_ints: ints = [0]>()
            a1 = Unsqueeze (a, zero)
            b1 = Unsqueeze (b, zero)
            both = Concat<axis: int = 0>(a1, b1)
            grid = Cast<to: int = 1>(both)
            y = Add (x, grid)
        }"""
    )
    x = np.zeros((1, 2, 3, 5), np.float32)
    wanted = np.stack(np.meshgrid(np.arange(5), np.arange(3))).astype(np.float32)[None]
    for given in (model, model_of(onnx.printer.to_text(model.graph).replace("[N,2,H,W] x", "[1,2,3,5] x", 1))):
        for declutter in (False, True):
            assert_close(run(given, {"x": x}, declutter=declutter), [wanted])


def test_a_size_that_is_asked_for_again():
    # GPT-2, as PyTorch writes it: as many positions as the mask has columns, which only a computed shape tells.
    model = model_of(
        """f (int64[B,S] mask, int64[2] shape) => (int64[] positions, int64[] again) {
            again = Reshape (mask, shape)
            size = Shape<start: int = 1>(again)
            last = Squeeze (size)
            zero = Constant<value_int: int = 0>()
            one = Constant<value_int: int = 1>()
            positions = Range (zero, last, one)
        }"""
    )
    plan = TypedSimplePlan(load(model).into_typed().declutter())
    for shape in ((2, 6), (3, -1), (12, 1)):
        mask = np.arange(12).reshape(4, 3)
        positions, again = plan.run([mask, ints(*shape)])
        np.testing.assert_array_equal(again, mask.reshape(shape))
        np.testing.assert_array_equal(positions, np.arange(mask.reshape(shape).shape[1]))


@pytest.mark.parametrize("declared", [("a", "b", "c"), ("a", "b", "")])
@pytest.mark.parametrize("opset", [2, 11, 13])
def test_split_into_as_many_pieces_as_there_are_outputs_though_the_last_is_not_read(declared, opset):
    node = onnx.helper.make_node("Split", ["x"], declared, axis=1)
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "b")]
    infos[0].type.tensor_type.shape.dim.add().dim_param = "N"
    infos[0].type.tensor_type.shape.dim.add().dim_value = 6
    graph = onnx.helper.make_graph([node], "g", infos[:1], infos[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    for declutter in (False, True):
        assert_close(run(model, {"x": x}, declutter=declutter), [x[:, 2:4]])
