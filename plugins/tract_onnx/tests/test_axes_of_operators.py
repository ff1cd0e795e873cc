"""The axes mappings of the operators that only ONNX has: a part of the inputs gives that part of the output."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import load
from onnx_single import node_model, texts
from test_trees import grid, random_trees, random_votes
from tract_onnx.onnx_only.bit_cast import BitCast
from tract_onnx.onnx_only.col2im import Col2Im
from tract_onnx.onnx_only.couple import CoupleProbabilities
from tract_onnx.onnx_only.det import Det
from tract_onnx.onnx_only.lookup import OneHotLookup
from tract_onnx.onnx_only.power_of_two import ToPowerOfTwo
from tract_onnx.onnx_only.probit import Probit
from tract_onnx.onnx_only.regex import RegexFullMatch
from tract_onnx.onnx_only.strings import StringConcat
from tract_onnx.onnx_only.tfidf import TfIdfVectorizer, Weighting
from tract_onnx.onnx_only.trees import TreeEnsemble

from tract_core.data import Constant, DatumType
from tract_core.model.fact import TypedFact
from tract_core.ops.cumsum import CumProd
from tract_core.ops.deform_conv import DeformConv
from tract_core.ops.lookup import Lookup
from tract_core.ops.roi_align import MaxRoiPool, RoiAlign
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST, REFERENCE

RANDOM = np.random.default_rng(0)


def f32(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


IMAGES, REGIONS, IMAGE_OF = f32(2, 3, 6, 6), f32(4, 4) * 5, np.array([0, 1, 1, 0])
WITH_IMAGE = np.concatenate([IMAGE_OF[:, None], np.abs(REGIONS)], axis=1).astype(np.float32)
ONE, TWO = (1, 1), (2, 2)
NUMBERS = RANDOM.integers(0, 4, (3, 4))
WORDS = texts(*"abcabd").reshape(2, 3)
KEYS = Constant(np.arange(3))


def forest():
    trees = random_trees(RANDOM)
    options = {**trees, **random_votes(RANDOM, trees, 3, "target"), "n_targets": 3}
    model = load(node_model("TreeEnsembleRegressor", [grid(RANDOM)], version=3, **options)).into_typed()
    return next(node.op for node in model.nodes if isinstance(node.op, TreeEnsemble))


CASES = [
    (DeformConv(ONE, ONE, ONE, ONE), [f32(2, 2, 5, 5), f32(3, 2, 2, 2), f32(2, 8, 6, 6), f32(3), f32(2, 4, 6, 6)], 2),
    (
        DeformConv(ONE, ONE, ONE, ONE, 2, 2),
        [f32(2, 4, 5, 5), f32(4, 2, 2, 2), f32(2, 16, 6, 6), f32(4), f32(2, 8, 6, 6)],
        1,
    ),
    (RoiAlign(2, 2, 1.0, 2), [IMAGES, REGIONS, IMAGE_OF], 2),
    (MaxRoiPool(2, 2, 1.0), [IMAGES, WITH_IMAGE], 2),
    (Col2Im(2, (4, 4), ONE, ONE, (0, 0), (0, 0)), [f32(2, 8, 9), np.array([4, 4]), np.array(TWO)], 1),
    (Det(), [f32(2, 3, 4, 4)], 2),
    (CumProd(1), [f32(2, 3, 4)], 2),
    (BitCast(DatumType.I32), [f32(2, 3)], 2),
    (ToPowerOfTwo(), [f32(2, 3)], 2),
    (Lookup(KEYS, Constant(np.arange(3) * 0.5), Constant(np.array(-1.0))), [NUMBERS], 2),
    (OneHotLookup(KEYS, strict=False), [NUMBERS], 2),
    (Probit(), [RANDOM.uniform(0, 1, (3, 4))], 2),
    (CoupleProbabilities(3), [RANDOM.uniform(0.1, 0.9, (4, 3))], 1),
    (RegexFullMatch("[ab]"), [WORDS], 2),
    (StringConcat(), [WORDS, WORDS[:, ::-1]], 2),
    (TfIdfVectorizer(KEYS, (1, 1, 1), (2, 0, 1), (1.0, 2.0, 3.0), Weighting.TFIDF, 1, 1, 0), [NUMBERS], 1),
    (forest(), [grid(RANDOM)], 1),
]


@pytest.mark.parametrize(("op", "inputs", "connected"), CASES, ids=lambda value: getattr(value, "name", None))
def test_a_part_gives_that_part(op, inputs, connected):
    registry = default_registry()
    facts = [TypedFact.of(DatumType.from_numpy(array.dtype), array.shape) for array in inputs]
    (fact,) = op.output_facts(facts)
    assert registry[COST][type(op)](op, facts, [fact]) is not None
    meaning, mapping = registry[REFERENCE][type(op)], registry[AXES][type(op)](op, facts, [fact])
    whole = meaning(op, *inputs)
    assert whole.shape == tuple(fact.shape)
    assert whole.dtype == fact.datum_type.numpy
    axes = [axis for axis in mapping.axes() if any(axis.inputs) and any(axis.outputs)]
    assert len(axes) == connected
    for axis in axes:
        pairs = zip(inputs, axis.inputs, strict=True)
        part = [array.take([1], axis=places[0]) if places else array for array, places in pairs]
        found, wanted = meaning(op, *part), whole.take([1], axis=axis.outputs[0][0])
        if wanted.dtype.kind in "OUb":
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5)
