"""The two transforms: beside plain arithmetic, in ONNX Runtime, and through archives."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from quantize_models import BUILDERS, turns
from tract_quantize import Calibration, QuantizeStatic, QuantizeWeights, Range, calibrate
from tract_quantize.samples import ListedSamples
from tract_quantize.whole import with_whole_products

import tract_core as tract
from tract_core.data import DatumType
from tract_core.errors import TransformError
from tract_core.limits import LoadLimits
from tract_core.model.axes import AxesMapping
from tract_core.model.source import TypedSource
from tract_core.ops.binary import Add
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import sources


def samples(name: str) -> ListedSamples:
    return ListedSamples([list(turn.values()) for turn in turns(name)])


def run(model: tract.Model, turn: dict[str, np.ndarray], runtime: str = "default") -> np.ndarray:
    return model.clone().into_runnable(runtime).run(list(turn.values()))[0].to_numpy()


def far(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def ops(model: tract.Model) -> list[str]:
    return [node.op.name for node in model.typed.live_nodes()]


def quantized(network, name: str, **options: object) -> tract.Model:
    model = network(name)
    model.transform(QuantizeStatic(calibrate(model, samples(name)), **options))
    return model


WAYS = {
    "static": lambda model, name: QuantizeStatic(calibrate(model, samples(name))),
    "static 7": lambda model, name: QuantizeStatic(calibrate(model, samples(name)), bits=7),
    "weights 8": lambda *_: QuantizeWeights(8, elements=1),
    "weights 4": lambda *_: QuantizeWeights(4, elements=1, block=16),
}
BOUND = {"static": 0.03, "static 7": 0.04, "weights 8": 0.02, "weights 4": 0.2}
"""Errors that rounding may cause: a part in 127, or in 7, of the largest of some numbers, a few times."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BUILDERS)
class TestNetworks:
    def test_results_are_near_those_in_floats_on_every_runtime(self, name: str, way: str, network) -> None:
        model = network(name)
        before = model.typed.clone()
        other = model.clone()
        other.transform(WAYS[way](model, name))
        assert model.typed == before
        for turn in turns(name, seed=1, count=2):
            wanted = run(model, turn)
            found = run(other, turn)
            assert 0 < far(found, wanted) < BOUND[way]
            assert far(run(other, turn, "reference"), found) < BOUND[way] / 3  # a step where a number lies half way

    def test_what_is_written_runs_in_onnxruntime(self, name: str, way: str, network, tmp_path) -> None:
        model = network(name)
        model.transform(WAYS[way](model, name))
        model.save(tmp_path / "written.onnx")
        options = ort.SessionOptions()
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # data stays in floats
        session = ort.InferenceSession(str(tmp_path / "written.onnx"), options)
        for turn in turns(name, seed=2, count=2):
            assert far(session.run(None, turn)[0], run(model, turn)) < BOUND[way] / 3

    def test_it_comes_back_from_files(self, name: str, way: str, network, tmp_path) -> None:
        model = network(name)
        model.transform(WAYS[way](model, name))
        (turn,) = turns(name, seed=3, count=1)
        for ending in ("onnx", "nnef.tar"):
            model.save(tmp_path / f"written.{ending}")
            loaded = tract.load(tmp_path / f"written.{ending}")
            again = loaded.into_model() if hasattr(loaded, "into_model") else loaded
            assert far(run(again, turn), run(model, turn)) < BOUND[way] / 10
            assert str(again.input_fact(0)) == str(network(name).input_fact(0))


def rounded(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers through bytes, in f64."""
    scale = (max(high, 0) - min(low, 0)) / 255
    zero = np.rint(-min(low, 0) / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def by_column(w: np.ndarray) -> np.ndarray:
    scale = np.abs(w).max(axis=0) / 127
    return np.clip(np.rint(w / scale), -127, 127) * scale


class TestStatic:
    def test_a_network_is_what_plain_arithmetic_makes_of_it(self, network) -> None:
        model = network("mlp")
        ranges = calibrate(model, samples("mlp")).ranges
        ends = [(ranges[name].low, ranges[name].high) for name in ("x", "bent")]
        weights = {
            node.name: node.op.value.array.astype(np.float64)
            for node in model.typed.live_nodes()
            if node.op.name == "Const" and node.outputs[0].fact.rank
        }
        w, v = (next(one for one in weights.values() if one.shape == shape) for shape in ((24, 64), (64, 10)))
        b, c = (next(one for one in weights.values() if one.size == size) for size in (64, 10))
        model.transform(QuantizeStatic(calibrate(model, samples("mlp"))))
        for turn in turns("mlp", seed=4, count=3):
            hidden = np.maximum(rounded(turn["x"].astype(np.float64), *ends[0]) @ by_column(w) + b, 0)
            wanted = rounded(hidden, *ends[1]) @ by_column(v) + c
            # one step of a hidden number, where rounding goes the other way
            step = ends[1][1] / 255 * np.abs(v).max()
            np.testing.assert_allclose(run(model, turn), wanted, atol=1.5 * step)
            assert np.mean(np.abs(run(model, turn) - wanted) < step / 20) > 0.8

    @pytest.mark.parametrize("name", BUILDERS)
    def test_every_product_by_weights_reads_integers(self, name: str, network) -> None:
        model = quantized(network, name).typed
        for node in model.live_nodes():
            if isinstance(node.op, Conv) or (isinstance(node.op, EinSum) and name != "attention"):
                assert all(isinstance(model.nodes[one.node].op, DequantizeLinear) for one in node.inputs[:2]), node

    def test_between_convolutions_there_are_bytes_alone(self, network) -> None:
        model = quantized(network, "depthwise").typed
        assert not {"Max", "Min"} & {node.op.name for node in model.live_nodes()}
        stored = [node for node in model.live_nodes() if isinstance(node.op, QuantizeLinear)]
        assert len(stored) == 3

    def test_a_residual_sum_is_one_of_bytes(self, network) -> None:
        model = quantized(network, "residual").typed
        (add,) = (
            node
            for node in model.live_nodes()
            if node.op.name == "Add"
            and all(model.constant(one) is None for one in node.inputs)
            and node.outputs[0].fact.rank == 4
        )
        assert all(isinstance(model.nodes[one.node].op, DequantizeLinear) for one in add.inputs)
        (reader,) = (model.nodes[one.node] for one in add.outputs[0].successors)
        assert isinstance(reader.op, QuantizeLinear)

    def test_what_is_concatenated_is_one_product_of_bytes(self, network) -> None:
        model = quantized(network, "detector").typed
        products = [node for node in model.live_nodes() if isinstance(node.op, (Conv, EinSum))]
        assert len(products) == 6  # the first one is cut in two, as a split is behind it
        joined = [node for node in model.live_nodes() if isinstance(node.op, TypedConcat)]
        assert [len(node.inputs) for node in joined] == [3, 2]
        for node in joined:
            assert all(isinstance(model.nodes[one.node].op, DequantizeLinear) for one in node.inputs)
            assert model.single_reader(node.outlets()[0]).op.name == "QuantizeLinear"

    def test_a_function_between_two_products_is_a_table(self, network) -> None:
        model = quantized(network, "detector").typed
        found = [node.op.table.array for node in model.live_nodes() if isinstance(node.op, LookupTable)]
        assert len(found) == 5  # that of the convolution that was cut too
        assert "Silu" not in ops(quantized(network, "detector"))

    def test_the_sigmoid_of_a_silu_is_rounded_to_bytes(self, network) -> None:
        model = network("detector")
        found = calibrate(model, samples("detector")).ranges
        model.transform(QuantizeStatic(calibrate(model, samples("detector"))))
        table = model.typed.node_by_name("s1.quantized").op.table.array
        (low, high), (first, last) = [(min(one.low, 0), max(one.high, 0)) for one in (found["c1"], found["s1"])]
        numbers = (np.arange(256) - np.rint(-low / (high - low) * 255)) * (high - low) / 255
        gate = np.rint(255 / (1 + np.exp(-numbers))) / 255
        steps = numbers * gate / (last - first) * 255 + np.rint(-first / (last - first) * 255)
        np.testing.assert_allclose(table, np.clip(steps, 0, 255), atol=0.501)

    def test_engines_compute_all_of_it_in_integers(self, network, tmp_path) -> None:
        quantized(network, "detector").save(tmp_path / "written.onnx")
        options = ort.SessionOptions()
        options.optimized_model_filepath, options.log_severity_level = str(tmp_path / "made.onnx"), 3
        ort.InferenceSession(str(tmp_path / "written.onnx"), options, providers=["CPUExecutionProvider"])
        made = Counter(node.op_type for node in onnx.load(tmp_path / "made.onnx").graph.node)
        assert {name: made[name] for name in ("QLinearConv", "QLinearConcat", "QLinearSigmoid", "QLinearAdd")} == {
            "QLinearConv": 5,  # the last one gives numbers
            "QLinearConcat": 2,
            "QLinearSigmoid": 5,
            "QLinearAdd": 1,
        }
        assert made["Resize"] == 1
        assert not {"Sigmoid", "Expand", "Gather", "Concat"} & {*made}

    def test_what_is_laid_side_by_side_is_calibrated_by_names_that_stay(self, network) -> None:
        model = network("detector").typed
        whole = with_whole_products(model)
        assert with_whole_products(whole) is whole
        again = [node.name for node in with_whole_products(model.clone()).live_nodes()]
        assert [node.name for node in whole.live_nodes()] == again
        other = network("residual").typed
        assert with_whole_products(other) is other

    @pytest.mark.parametrize("count", [2, 3, 7])
    def test_parts_of_a_product_are_one_again_and_compute_the_same(self, count: int) -> None:
        model, parts = sources(*["B,4,5,6,f32"] * count)
        weights = np.random.default_rng(count).standard_normal((8, 4 * count)).astype(np.float32)
        whole = wire_one(model, "whole", TypedConcat(1), *parts)
        op = EinSum(AxesMapping.parse("abcd,eb->aecd"), DatumType.F32)
        model.set_outputs([wire_one(model, "y", op, whole, model.add_const("w", weights))])
        model.declutter()
        assert ops(tract.Model.from_typed(model.clone())).count("EinSum") == count
        found = with_whole_products(model)
        assert [one.op.name for one in found.live_nodes() if one.op.name[:5] not in ("Const", "Typed")] == ["EinSum"]
        given = [np.random.default_rng(seed).standard_normal((2, 4, 5, 6)).astype(np.float32) for seed in range(count)]
        wanted = np.einsum("abcd,eb->aecd", np.concatenate(given, 1).astype(np.float64), weights)
        result = tract.Model.from_typed(found.clone()).into_runnable("reference").run(given)[0].to_numpy()
        np.testing.assert_allclose(result, wanted, atol=1e-4)

    def test_parts_that_differ_or_are_read_elsewhere_stay_apart(self) -> None:
        model, (a, b, c) = sources("B,4,5,6,f32", "B,4,5,6,f32", "B,4,5,6,f64")
        products = []
        for count, (x, kind) in enumerate(
            ((a, DatumType.F32), (b, DatumType.F32), (c, DatumType.F64), (c, DatumType.F64))
        ):
            weights = model.add_const(f"w{count}", np.ones((3, 4), kind.numpy))
            products.append(wire_one(model, f"p{count}", EinSum(AxesMapping.parse("abcd,eb->aecd"), kind), x, weights))
        wide = wire_one(model, "wide", Add(), *products[2:])
        model.set_outputs([wire_one(model, "sum", Add(), *products[:2]), products[0], wide])
        assert with_whole_products(model) is model

    def test_attention_keeps_softmax_and_its_products_in_floats(self, network) -> None:
        model = quantized(network, "attention").typed
        (softmax,) = (node for node in model.live_nodes() if node.op.name == "Softmax")
        assert not isinstance(model.nodes[softmax.inputs[0].node].op, DequantizeLinear)
        assert not any(
            isinstance(model.nodes[inlet.node].op, QuantizeLinear) for inlet in softmax.outputs[0].successors
        )

    def test_weights_that_two_products_share_are_held_once(self, network) -> None:
        model = quantized(network, "shared").typed
        held = [
            node
            for node in model.live_nodes()
            if node.op.name == "Const"
            and node.outputs[0].fact.datum_type.short == "i8"
            and node.outputs[0].fact.rank == 2
        ]
        assert len(held) == 1

    def test_seven_bits_are_no_more_than_63(self, network) -> None:
        model = quantized(network, "residual", bits=7).typed
        arrays = [model.constant(node.outlets()[0]) for node in model.live_nodes() if node.op.name == "Const"]
        assert max(int(np.abs(one).max()) for one in arrays if one.dtype == np.int8 and one.size > 16) == 63

    def test_nodes_by_name_stay_in_floats(self, network) -> None:
        model = network("residual")
        names = [node.name for node in model.typed.live_nodes() if node.op.name == "Conv"]
        plan = QuantizeStatic(calibrate(model, samples("residual")), ["c[0]", "c1"]).rounding(model.typed)
        assert plan.left == {"c0": "it is excluded", "c1": "it is excluded"}
        assert {*names} & {"c0", "c1"}

    def test_a_name_that_fits_nothing_is_told(self, network) -> None:
        model = network("mlp")
        with pytest.raises(TransformError, match=r"no product has a name like 'hiden.einsum'") as error:
            model.transform(QuantizeStatic(calibrate(model, samples("mlp")), ["hiden.einsum"]))
        assert "did you mean 'hidden.einsum'?" in str(error.value)

    @pytest.mark.parametrize("name", ["mlp", "residual"])
    def test_products_of_matrices_are_written_with_biases_in_steps(self, network, name, tmp_path) -> None:
        quantized(network, name).save(tmp_path / "written.onnx")
        nodes = onnx.load(tmp_path / "written.onnx").graph.node
        makers = {result: node.op_type for node in nodes for result in node.output}
        products = [node for node in nodes if node.op_type == "Gemm"]
        assert products
        assert {makers.get(one) for node in products for one in node.input} == {"DequantizeLinear"}

    def test_a_file_that_holds_no_ranges(self, network, tmp_path) -> None:
        (tmp_path / "other.json").write_text("{}")
        for name, message in (("absent.json", "it cannot be read"), ("other.json", "it holds no ranges")):
            with pytest.raises(TransformError, match=message):
                network("mlp").transform(QuantizeStatic(str(tmp_path / name)))

    def test_limits_properties_and_assertions_stay(self, network) -> None:
        model = network("mlp")
        model.typed.limits = LoadLimits(run_deadline_s=7)
        model.typed.properties["by"] = np.array("us")
        model.typed.symbols.add_assertion("B<=64")
        model.transform(QuantizeStatic(calibrate(model, samples("mlp"))))
        assert model.typed.limits == LoadLimits(run_deadline_s=7)
        assert model.typed.properties["by"] == "us"
        assert "B<=64" in [str(one) for one in model.typed.symbols]

    def test_nothing_but_zeros_leaves_a_node_in_floats(self, network) -> None:
        model = network("two_inputs")
        zeros = ListedSamples([[np.zeros((5, 40), np.float32), one["b"]] for one in turns("two_inputs")])
        left = QuantizeStatic(calibrate(model, zeros)).rounding(model.typed).left
        assert left == {"p": "its data was nothing but zeros"}

    def test_data_that_is_always_the_same_number(self, network) -> None:
        model, same = network("mlp"), np.full((3, 24), -2.5, np.float32)
        wanted = run(model, {"x": same})
        model.transform(QuantizeStatic(calibrate(model, ListedSamples([[same]]))))
        assert far(run(model, {"x": same}), wanted) < 0.03

    def test_a_quantised_model_is_refused(self, network) -> None:
        model = quantized(network, "mlp")
        for transform in (QuantizeStatic(Calibration({})), QuantizeWeights()):
            with pytest.raises(TransformError, match="the model is quantised already: 6 nodes round, or hold"):
                model.transform(transform)

    def test_ranges_of_another_model_are_refused(self, network) -> None:
        model = network("mlp")
        with pytest.raises(TransformError, match="there is no range of tensor 'x'"):
            model.transform(QuantizeStatic(Calibration({"y": Range(0.0, 1.0)})))
        with pytest.raises(TransformError, match="'bits' is 3, wanted 7 or 8"):
            model.transform(QuantizeStatic(Calibration({}), bits=3))

    def test_ranges_may_be_in_a_file(self, network, tmp_path) -> None:
        model = network("mlp")
        ranges = calibrate(model, samples("mlp"))
        ranges.save(tmp_path / "ranges.json")
        other = model.clone()
        other.transform(json.dumps({"name": "quantize_static", "ranges": str(tmp_path / "ranges.json")}))
        model.transform(QuantizeStatic(ranges))
        assert other.typed == model.typed


class TestWeights:
    @pytest.mark.parametrize(("bits", "block"), [(8, 16), (8, 32), (4, 16), (4, 64)])
    def test_a_matrix_is_in_blocks_along_what_is_summed(self, bits: int, block: int, network) -> None:
        model = network("shared")
        model.transform(QuantizeWeights(bits, block))
        (node,) = (node for node in model.typed.live_nodes() if isinstance(node.op, DequantizeLinear))
        assert node.op.block == block
        assert model.typed.outlet_fact(node.inputs[0]).datum_type.short == {8: "i8", 4: "i4"}[bits]

    def test_convolutions_of_one_place_have_a_scale_for_each_channel(self, network) -> None:
        model = network("depthwise")
        model.transform(QuantizeWeights(4, elements=1))
        made = [node.op for node in model.typed.live_nodes() if isinstance(node.op, DequantizeLinear)]
        assert [op.block for op in made] == [0, 0, 0]

    def test_small_ones_stay(self, network) -> None:
        model = network("mlp")
        found = QuantizeWeights(8, elements=700).rounding(model.typed)
        assert list(found.left.values()) == ["it has fewer than 700 weights"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"bits": 5}, "'bits' is 5, wanted 4 or 8"), ({"block": 24}, "'block' is 24, wanted a power of two")],
    )
    def test_parameters_that_make_no_sense(self, options, message: str, network) -> None:
        with pytest.raises(TransformError, match=message):
            network("mlp").transform(QuantizeWeights(**options))


def test_inputs_and_outputs_keep_their_names(network) -> None:
    model = quantized(network, "two_inputs").typed
    assert [model.outlet_name(one) for one in (*model.inputs, *model.outputs)] == ["a", "b", "y"]
    assert all(isinstance(model.nodes[one.node].op, TypedSource) for one in model.inputs)
