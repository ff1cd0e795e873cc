"""What a model holds beside its operators comes back too: names, symbols, conditions, bodies, values of every type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cycles import cycled, text

from tract_core.data import Constant, DatumType, DType, QuantizedType, SequenceType, SymbolicArray
from tract_core.data.containers import ItemFact, MapType, OptionalType
from tract_core.dims import dim_min, symbol
from tract_core.errors import Unsupported
from tract_core.model.conditions import Condition
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.topk import Topk


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def identities(*kinds: DType) -> TypedModel:
    """A model that gives its inputs back."""
    model = TypedModel()
    model.symbols.add("S")
    model.set_outputs([model.add_source(f"x{i}", TypedFact.of(kind, ())) for i, kind in enumerate(kinds)])
    return model


def check(model: TypedModel, **flags: Any) -> TypedModel:
    """The model that comes back, which is the same, with the same names outside."""
    found = cycled(model, **flags)
    assert same_model(found, model)
    for one, other in ((found.inputs, model.inputs), (found.outputs, model.outputs)):
        assert [found.outlet_name(outlet) for outlet in one] == [model.outlet_name(outlet) for outlet in other]
    return found


NAMES = ("x", "", "a/b", "a_b", "a.b", "a:0", "1st", "größe", "graph", "S", 'a "quoted" \\ name;', "a b", "x_1")


@pytest.mark.parametrize("extended", [False, True])
def test_names_of_inputs_and_outputs(extended) -> None:
    model = TypedModel()
    inputs = [source(model, name, "S,f32") for name in NAMES]
    outputs = [model.wire_node(f"{name}/y", Exp(), [outlet])[0] for name, outlet in zip(NAMES, inputs, strict=True)]
    model.set_outputs(outputs)
    check(model, extended_identifier_syntax=extended)


def test_outputs_that_are_one_tensor_inputs_or_constants() -> None:
    model = TypedModel()
    x, k = source(model, "x", "2,f32"), model.add_const("k", np.arange(2, dtype=np.float32))
    large = model.add_const("large", np.arange(20))
    (y,) = model.wire_node("y", Neg(), [x])
    (again,) = model.wire_node("again", Identity(), [y])
    (more,) = model.wire_node("more", Identity(), [again])
    model.set_outputs([y, y, x, k, large, x, again, more])
    check(model)


def test_results_have_their_labels() -> None:
    model = TypedModel()
    x = source(model, "x", "4,f32")
    values, places = model.wire_node("top", Topk(0, True, 2), [x, model.add_const("k", np.array(2))])
    model.set_label(places, "where/they:are")
    model.set_outputs([places, values])
    check(model)


CONTAINERS: tuple[DType, ...] = (
    SequenceType(ItemFact(DatumType.F32, (2, None, symbol("S")))),
    SequenceType(ItemFact(DatumType.F32), (ItemFact(DatumType.F32, (1,)), ItemFact(DatumType.F32, (2,)))),
    OptionalType(ItemFact(SequenceType(ItemFact(DatumType.STRING))), True),
    MapType(DatumType.I64, ItemFact(DatumType.F32, ())),
)


def test_inputs_of_every_type() -> None:
    plain = [kind for kind in DatumType if kind is not DatumType.BLOB]
    quantised = [QuantizedType(DatumType.I8, -3, 1 / 3), QuantizedType(DatumType.U8, 200, 5e-324)]
    quantised.append(QuantizedType(DatumType.I32, -(1 << 31), float(np.float32(0.1))))
    check(identities(*plain, *CONTAINERS, *quantised))


KINDS = [np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.int4]
KINDS += [np.dtype(f"{sign}{bits}") for sign in "iu" for bits in (1, 2, 4, 8)]


@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 0, 3), (17,), (1, 2, 3), (1,) * 9, (2,) * 10])
def test_constants_of_every_type_and_rank(shape) -> None:
    model = TypedModel()
    source(model, "x", "1,f32")
    arrays = [np.resize(np.array([0, 1, 1]), shape).astype(kind) for kind in KINDS]
    arrays.append(np.full(shape, "a text;\n☃", object))
    arrays.append(np.full(shape, np.nan, np.float32))
    model.set_outputs([model.add_const(f"k{i}", array) for i, array in enumerate(arrays)])
    check(model)


def test_constants_of_sizes() -> None:
    model = TypedModel()
    source(model, "x", "S,T,f32")
    s, t = symbol("S"), symbol("T")
    values = [s, (s, 1), (2 * s + t // 3, dim_min(s, t)), np.array([[s], [t]], object), np.array([[[s]]], object)]
    shared = model.add_const("shared", (s, t))
    sums = [model.wire_node(f"sum{i}", Add(), [shared, shared])[0] for i in range(2)]
    held = [model.add_const(f"k{i}", SymbolicArray(np.array(v, object))) for i, v in enumerate(values)]
    read = [model.wire_node(f"y{i}", Identity(), [outlet])[0] for i, outlet in enumerate(held)]
    model.set_outputs([*read, *sums])
    assert same_model(cycled(model).declutter(), model.declutter())


def test_symbols_conditions_and_scenarios() -> None:
    model = TypedModel()
    for name in ("T", "batch size", "a.b", "f;g", "min", "x"):
        model.symbols.add(name)
    model.symbols.new_symbol("n")
    model.symbols.add_assertion("decode: T==1")
    model.symbols.add_assertion('i"f;g" + 2*T <= 4096')
    model.symbols.add_scenario("prompt; or so")
    x, y = source(model, "x", 'i"batch size",S,f32'), source(model, "y", "A,T,f32")
    model.set_outputs(model.wire_node("joined", TypedConcat(0), [x, y]))
    model.require(Condition(dim_min(symbol("a.b"), 7), "->", symbol("T")), "somebody")
    found = check(model)
    assert found.symbols.names == model.symbols.names
    assert found.symbols.scenarios == model.symbols.scenarios
    assert list(found.symbols) == list(model.symbols)
    assert list(found.conditions) == list(model.conditions)
    assert found.symbols.is_unnamed(symbol("n"))
    assert not found.symbols.is_unnamed(symbol("T"))


def test_properties_of_every_type() -> None:
    model = identities(DatumType.F32)
    for i, kind in enumerate(KINDS):
        model.properties[f"a property/{i}"] = np.ones((2, 1), kind)
    model.properties['texts "quoted"'] = np.array(["a", "b;\n"], object)
    model.properties["empty"] = np.zeros((0, 2), np.float32)
    model.properties["rank 9"] = np.ones((1,) * 9, np.float32)
    check(model)


def nested(depth: int) -> TypedModel:
    """A model in a model, with symbols, conditions, properties and constants of their own."""
    model = TypedModel()
    x = source(model, "x/y", f"S{depth},3,f32")
    model.symbols.add_assertion(f"S{depth}>=1")
    weights = model.add_const("weights", np.arange(3 * 9, dtype=np.float32).reshape(9, 3)[depth : depth + 1] * np.pi)
    model.require(Condition(symbol(f"S{depth}"), "<=", 12), "a node")
    model.properties["depth"] = np.array(depth)
    (y,) = model.wire_node("y", Add(), [x, weights])
    if depth:
        branches = [Branch(nested(depth - 1), (1,)) for _ in range(2)]
        shape = symbol(f"S{depth}"), 3
        condition = source(model, "condition", "bool")
        model.set_outputs([*model.wire_node("inner", IfThenElse(*branches, (shape, shape, shape)), [condition, y]), x])
    else:
        model.set_outputs([y, y, x])
    return model


def test_bodies_are_fragments() -> None:
    model = nested(1)
    found = check(model)
    assert text(model).count("fragment body") == 2
    assert text(found) == text(model)


def test_bodies_keep_their_names() -> None:
    found, model = check(nested(1)), nested(1)
    (found,), (model,) = ([node.op for node in one.live_nodes() if node.name == "inner"] for one in (found, model))
    for branch in ("then_branch", "else_branch"):
        one, other = (getattr(op, branch).body for op in (found, model))
        names = [[node.name for node in body.live_nodes() if not isinstance(node.op, Const)] for body in (one, other)]
        assert names[0] == names[1]


def test_sizes_that_the_standard_cannot_say_are_refused_without_the_registry() -> None:
    model = TypedModel()
    source(model, "x", "S,T,f32")
    model.set_outputs([model.add_const("size", (dim_min(symbol("S"), symbol("T")), 1))])
    with pytest.raises(Unsupported, match=r"node 'x'.*cannot be written"):
        text(model, no_tract_core=True)


def test_a_constant_is_written_once() -> None:
    model = TypedModel()
    x = source(model, "x", "3,f32")
    k = model.add_const("k", Constant(np.arange(3, dtype=np.float32)))
    (a,) = model.wire_node("a", Add(), [x, k])
    model.set_outputs(model.wire_node("b", Add(), [a, k]))
    check(model)
