"""What compilers share of what they find in models: products, attention, gates and chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core.compile.attention import AttentionAxes, attention_behind, sizes_of_axes, wait_for_mix
from tract_core.compile.chains import chain_behind
from tract_core.compile.gates import epilogue_behind
from tract_core.compile.groups import Group, Grouper
from tract_core.compile.products import ProductAxes, is_product_of_two, is_rows_by_matrix, moves_only, stretched_shapes
from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Mul
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp, IsNan, Neg
from tract_core.ops.iff import Iff
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.runtime.host import HostNode, host_nodes


class Alone(Group):
    """One node."""


class Alones(Grouper[Alone]):
    """Every node is alone."""

    def begin(self, node: HostNode) -> Alone:
        return Alone((node.node,))


def anything(node: TypedNode) -> bool:
    return True


def never(node: TypedNode) -> bool:
    return False


def always(node: TypedNode, others: Sequence[OutletId]) -> bool:
    return True


def product(expression: str) -> EinSum:
    return EinSum(AxesMapping.parse(expression), DatumType.F32)


class Drawn:
    """A model that is drawn, one node after the other, each with one output but for the last."""

    def __init__(self, **inputs: str) -> None:
        self.model = TypedModel()
        self.at = {
            name: self.model.add_source(name, parse_typed_fact(fact, self.model.symbols))
            for name, fact in inputs.items()
        }

    def add(self, name: str, op: TypedOp, *inputs: str) -> Drawn:
        self.at[name] = self.model.wire_node(name, op, [self.at[one] for one in inputs])[0]
        return self

    def grouping(self, *outputs: str, there: Sequence[str] = ()) -> Alones:
        self.model.set_outputs([self.at[one] for one in outputs])
        found = Alones(self.model, host_nodes(self.model))
        found.there.update(self.at[one] for one in there)
        return found

    def names(self, nodes: Sequence[int]) -> list[str]:
        return [self.model.nodes[node].name for node in nodes]


# -- products ----------------------------------------------------------------------------------------------------------


@given(st.permutations("abmnk"), st.permutations("abmk"), st.permutations("abnk"), st.booleans())
def test_axes_of_a_product_are_told_by_where_they_are(
    order: list[str], left: list[str], right: list[str], swapped: bool
) -> None:
    """NumPy's `matmul` of factors whose axes were put in that order gives what `einsum` gives."""
    output = [name for name in order if name != "k"]
    terms = ["".join(left), "".join(right)][:: -1 if swapped else 1]
    op, sizes = product(f"{terms[0]},{terms[1]}->{''.join(output)}"), dict(zip("abmnk", (2, 3, 4, 5, 6), strict=True))
    random = np.random.default_rng(0)
    factors = [random.integers(-9, 9, [sizes[name] for name in term]) for term in terms]
    axes = ProductAxes.of(op, [one.shape for one in factors])

    def matrix(which: int, *names: str) -> Any:
        turned = np.einsum(f"{terms[which]}->{''.join(names)}", factors[which])
        return turned.reshape([int(np.prod([sizes[one] for one in name])) for name in names])

    found = matrix(axes.left, axes.pairs, axes.rows, axes.inner) @ matrix(
        axes.right, axes.pairs, axes.inner, axes.columns
    )
    names = axes.pairs + axes.rows + axes.columns
    whole = np.einsum(f"{names}->{''.join(output)}", found.reshape([sizes[one] for one in names]))
    np.testing.assert_array_equal(whole, np.einsum(f"{terms[0]},{terms[1]}->{''.join(output)}", *factors))
    own = [name for name in output if name in axes.rows + axes.columns]
    assert own[-1] in axes.columns or output[-1] in axes.pairs


def facts(*texts: str) -> list[Any]:
    model = TypedModel()
    return [parse_typed_fact(text, model.symbols) for text in texts]


@pytest.mark.parametrize(
    ("expression", "shapes", "wanted"),
    [
        ("mk,kn->mn", ("2,3,f32", "3,4,f32"), True),
        ("mk,kn->n", ("2,3,f32", "3,4,f32"), False),
        ("mk,kn->n", ("1,3,f32", "3,4,f32"), True),
        ("mm,mn->mn", ("3,3,f32", "3,4,f32"), False),
        ("mk->m", ("2,3,f32",), False),
    ],
)
def test_which_sums_are_products_of_two(expression: str, shapes: Sequence[str], wanted: bool) -> None:
    assert is_product_of_two(product(expression), facts(*shapes)) is wanted


def test_axes_of_size_1_are_repeated_where_they_are_summed() -> None:
    assert stretched_shapes(product("mk,kn->mn"), facts("2,1,f32", "3,4,f32")) == [[2, 3], [3, 4]]


def test_axes_of_size_1_of_the_result_are_none() -> None:
    op = product("bmk,bkn->bmn")
    found = stretched_shapes(op, facts("1,2,3,f32", "5,3,1,f32"))
    assert found == [[1, 2, 3], [5, 3, 1]]
    assert ProductAxes.of(op, found) == ProductAxes("", "b", "m", "k", 1, 0)  # the last axis that is one


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("bmk,kn->bmn", True),
        ("bmk,nk->bmn", True),
        ("mk,kn->nm", True),
        ("bmk,bkn->bmn", False),
        ("mk,k->m", True),
        ("mk,mk->m", False),
    ],
)
def test_rows_by_one_matrix(expression: str, wanted: bool) -> None:
    op = product(expression)
    sizes = dict(zip("bmnk", (2, 3, 4, 5), strict=True))
    axes = ProductAxes.of(op, [[sizes[name] for name in term] for term in op.axes.inputs])
    assert is_rows_by_matrix(op, axes) is wanted


def test_what_only_moves_elements() -> None:
    x, turned, wide = facts("1,2,3,f32", "3,2,f32", "3,2,f64")
    assert moves_only(product("abc->cb"), [x], turned)
    assert not moves_only(product("abc->cb"), [x], wide)
    assert not moves_only(product("abc->ab"), [x], turned)


# -- attention ---------------------------------------------------------------------------------------------------------


def attention() -> Drawn:
    """A mask, which is only computed behind the first product, is added to scores."""
    drawn = Drawn(q="B,7,2,4,f32", k="B,9,2,4,f32", v="B,9,2,5,f32", m="1,1,1,9,f32")
    drawn.add("scores", product("bqhd,bkhd->bhqk"), "q", "k").add("mask", Exp(), "m")
    drawn.add("masked", Add(), "scores", "mask").add("soft", Softmax((3,)), "masked")
    return drawn.add("mixed", product("bhqk,bkhv->bqhv"), "soft", "v")


def found_in(drawn: Drawn, fits: Callable[[TypedNode], bool] = anything) -> AttentionAxes | None:
    return attention_behind(drawn.grouping("mixed"), drawn.at["scores"].node, drawn.at["masked"], fits)


def test_attention_is_found_with_its_axes() -> None:
    drawn = attention()
    found = found_in(drawn)
    assert found is not None
    assert drawn.names(found.nodes) == ["soft", "mixed"]
    assert found.factors == tuple(drawn.at[name] for name in "qkv")
    queries, keys, values, scores, result = found.terms
    assert (found.key, found.depth) == (scores[3], queries[3])
    assert (keys[1], values[1], found.width) == (found.key, found.key, result[3])
    assert found.alone == (scores[2],)
    sizes = sizes_of_axes(drawn.model, found.factors, found.terms[:3])
    assert [str(sizes[name]) for name in (*scores, *result)] == ["B", "2", "7", "9", "B", "7", "2", "5"]


def test_keys_may_be_the_first_factor() -> None:
    drawn = Drawn(q="B,7,2,4,f32", k="B,9,2,4,f32", v="B,9,2,5,f32")
    drawn.add("masked", product("bkhd,bqhd->bhqk"), "k", "q").add("soft", Softmax((3,)), "masked")
    drawn.add("mixed", product("bkhv,bhqk->bqhv"), "v", "soft")
    found = attention_behind(drawn.grouping("mixed"), drawn.at["masked"].node, drawn.at["masked"], anything)
    assert found is not None
    assert found.factors == tuple(drawn.at[name] for name in "qkv")


@pytest.mark.parametrize(
    ("mix", "axis"),
    [
        ("bhqk,bhkv->bqhv", 1),  # heads are not summed over
        ("bhqk,bhkv->bqhk", 3),  # nor are the keys
        ("bhqk,bhkv->bqv", 3),  # heads are, besides the keys
        ("bhqq,bhkv->bqhv", 3),
    ],
    ids=["softmax along heads", "keys kept", "heads summed", "diagonal"],
)
def test_what_only_looks_like_attention(mix: str, axis: int) -> None:
    drawn = Drawn(q="B,7,2,4,f32", k="B,7,2,4,f32", v="B,2,7,7,f32", m="1,1,1,7,f32")
    drawn.add("scores", product("bqhd,bkhd->bhqk"), "q", "k").add("masked", Add(), "scores", "m")
    drawn.add("soft", Softmax((axis,)), "masked").add("mixed", product(mix), "soft", "v")
    assert found_in(drawn) is None


def test_no_attention_where_others_read_shares_or_a_node_does_not_fit() -> None:
    drawn = attention()
    assert (
        attention_behind(drawn.grouping("mixed", "soft"), drawn.at["scores"].node, drawn.at["masked"], anything) is None
    )
    assert found_in(attention(), lambda node: node.name != "mixed") is None


def test_the_first_product_waits_for_the_second_one() -> None:
    drawn = attention()
    grouping = drawn.grouping("mixed")
    first, passes = drawn.at["scores"].node, lambda node: isinstance(node.op, Add)
    assert not wait_for_mix(grouping, first, lambda node: node.name != "soft", passes)
    assert not wait_for_mix(grouping, first, anything, never)
    assert wait_for_mix(grouping, first, anything, passes)
    assert not wait_for_mix(grouping, first, anything, passes)  # its turn has come
    order = drawn.names([node for group in grouping.found() for node in group.nodes])
    assert order.index("mask") < order.index("scores") < order.index("masked") < order.index("mixed")


def zeroing(*, zero: float = 0.0, swapped: bool = False) -> Drawn:
    """Shares that are NaN become a number, as where PyTorch's exporter writes attention."""
    drawn = Drawn(q="B,7,2,4,f32", k="B,9,2,4,f32", v="B,9,2,5,f32")
    drawn.add("masked", product("bqhd,bkhd->bhqk"), "q", "k").add("soft", Softmax((3,)), "masked")
    drawn.at["zero"] = drawn.model.add_const("zero", np.full((1, 1, 1, 1), zero, np.float32))
    drawn.add("missing", IsNan(), "soft")
    drawn.add("kept", Iff(), "missing", *(("soft", "zero") if swapped else ("zero", "soft")))
    return drawn.add("mixed", product("bhqk,bkhv->bqhv"), "kept", "v")


def test_zeros_in_the_place_of_nan_are_found_by_who_asks() -> None:
    drawn = zeroing()
    grouping, first = drawn.grouping("mixed"), drawn.at["masked"]
    assert attention_behind(grouping, first.node, first, anything) is None
    found = attention_behind(grouping, first.node, first, anything, zeroes=True)
    assert found is not None
    assert drawn.names(found.nodes) == ["soft", "mixed"]
    assert drawn.names(found.zeroing) == ["missing", "kept"]
    assert wait_for_mix(grouping, first.node, anything, never, zeroes=True)
    order = drawn.names([node for group in grouping.found() for node in group.nodes])
    assert order[-5:] == ["masked", "soft", "missing", "kept", "mixed"]
    plain = attention()
    assert attention_behind(plain.grouping("mixed"), plain.at["scores"].node, plain.at["masked"], anything, zeroes=True)


@pytest.mark.parametrize(
    ("drawn", "outputs"),
    [
        (zeroing(zero=1.0), ["mixed"]),
        (zeroing(swapped=True), ["mixed"]),
        (zeroing(), ["mixed", "soft"]),
        (zeroing(), ["mixed", "missing"]),
    ],
    ids=["another number", "NaN kept", "shares read", "test read"],
)
def test_what_only_looks_like_zeros_in_the_place_of_nan(drawn: Drawn, outputs: Sequence[str]) -> None:
    first = drawn.at["masked"]
    assert attention_behind(drawn.grouping(*outputs), first.node, first, anything, zeroes=True) is None


# -- gates -------------------------------------------------------------------------------------------------------------


def gates(size: int = 12) -> Drawn:
    drawn = Drawn(x=f"B,{size},f32", c="B,3,f32")
    return drawn.add("gates", Neg(), "x").add("before", Exp(), "c").add("h", LstmEpilogue(3), "gates", "before")


def test_the_epilogue_behind_gates() -> None:
    drawn = gates()
    there = drawn.grouping("h", there=["before"])
    found = epilogue_behind(there, drawn.at["gates"], anything)
    assert found is not None
    assert found.name == "h"
    assert epilogue_behind(there, drawn.at["before"], anything) is None  # which is no gate
    assert epilogue_behind(there, drawn.at["gates"], never) is None
    assert epilogue_behind(drawn.grouping("h"), drawn.at["gates"], anything) is None  # the state is not there
    assert epilogue_behind(drawn.grouping("h", "gates", there=["before"]), drawn.at["gates"], anything) is None


def test_gates_of_a_gru_are_two_inputs() -> None:
    drawn = Drawn(x="B,9,f32", y="B,9,f32", h="B,3,f32").add("g", Neg(), "x")
    grouping = drawn.add("next", GruEpilogue(3), "g", "y", "h").grouping("next")
    found = epilogue_behind(grouping, drawn.at["g"], anything)
    assert found is not None
    assert found.name == "next"
    drawn = Drawn(x="B,9,f32", h="B,3,f32").add("g", Neg(), "x")
    assert epilogue_behind(drawn.add("n", GruEpilogue(3), "g", "g", "h").grouping("n"), drawn.at["g"], anything) is None


# -- chains ------------------------------------------------------------------------------------------------------------


def test_a_chain_goes_on_while_it_is_taken() -> None:
    drawn = Drawn(x="B,4,f32", y="B,4,f32").add("a", Exp(), "x").add("b", Mul(), "a", "y").add("c", Mul(), "b", "b")
    drawn.add("d", Neg(), "c").add("sum", Reduce((1,), Reducer.SUM), "d")
    grouping, asked = drawn.grouping("sum"), dict[str, list[OutletId]]()

    def take(node: TypedNode, others: Sequence[OutletId]) -> bool:
        asked[node.name] = list(others)
        return node.name != "d"

    chain = chain_behind(grouping, drawn.at["a"], take)
    assert drawn.names([node.id for node in chain]) == ["b", "c"]
    assert asked == {"b": [drawn.at["y"]], "c": [], "d": []}
    whole = chain_behind(grouping, drawn.at["a"], always)
    assert drawn.names([node.id for node in whole]) == ["b", "c", "d"]  # the sum is of another shape


def test_a_chain_ends_where_others_read_it() -> None:
    drawn = Drawn(x="B,4,f32").add("a", Exp(), "x").add("b", Neg(), "a").add("c", Neg(), "b")
    grouping = drawn.add("d", Exp(), "b").grouping("c", "d")
    assert drawn.names([one.id for one in chain_behind(grouping, drawn.at["a"], always)]) == ["b"]
    grouping = drawn.grouping("a", "c")
    assert not list(chain_behind(grouping, drawn.at["a"], always))
