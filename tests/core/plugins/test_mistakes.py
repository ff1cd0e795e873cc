"""What authors of operators and rules get wrong is told as what it is, with the distribution that it is from."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.errors import FactError, GraphError, RegistrationError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import Rule, rewrites
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Abs, ElementWise, Exp, Neg
from tract_core.plugins import PluginWarning, Registry, Rows
from tract_core.plugins.keys import DECLUTTER, REFERENCE
from tract_core.plugins.tables import Row, Table
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.case import CASES, Case
from tract_core.testing.checks import CHECKS, Bench
from tract_core.testing.declutter import checked_declutter
from tract_core.testing.toys import toy_plugin, toy_registry, toy_rows

REFERENCE_RUNTIME = Registry(discover=False).load("tract_runtimes", "reference")()


@dataclass(frozen=True)
class Odd(TypedOp):
    """Says of its outputs whatever a test wants."""

    answer: Callable[[Any], Any]

    def output_facts(self, inputs):
        return self.answer(inputs[0])


def model_of(op: Any, registry: Registry | None = None) -> TypedModel:
    model = TypedModel(registry=registry)
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    model.set_outputs(model.wire_node("mine", op, [x]))
    return model


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda x: x, "a fact that is in no tuple"),
        (lambda x: x.shape, "a ShapeFact"),
        (lambda _: None, "None"),
        (lambda _: (), "no fact at all"),
        (lambda x: (x.shape,), "a tuple with a ShapeFact"),
        (lambda x: [x, None], "a list with None"),
        (lambda _: "f32", "a str"),
    ],
)
def test_what_output_facts_returns(answer, found):
    with pytest.raises(FactError) as caught:
        model_of(Odd(answer))
    assert str(caught.value) == (
        f"node 'mine' (Odd): output_facts of Odd of module {__name__} returned {found}, wanted a tuple of facts\n"
        "  hint: have output_facts of Odd return a tuple with one TypedFact per output"
    )


def test_a_list_of_facts_will_do():
    model = model_of(Odd(lambda x: [x, x]))
    assert len(model.outputs) == 2


def test_an_operator_is_named_with_its_distribution():
    plugin = toy_plugin()
    plugin.__name__ = "tests.plugin"
    registry = Registry({"mine": plugin}, discover=False)
    with pytest.raises(FactError, match=r"node 'mine' \(Odd\): output_facts of Odd of mine returned None"):
        model_of(Odd(lambda _: None), registry)
    model = TypedModel(registry=registry)
    with pytest.raises(FactError, match=r"node 'mine' \(Neg\): Neg wants"):
        model.wire_node("mine", Neg(), [model.add_source("x", parse_typed_fact("bool"))])


@dataclass
class Changeable(ElementWise):
    pass


class NoDataclass(TypedOp):
    def output_facts(self, inputs):
        return (inputs[0],)


class ForgottenField(Neg):
    slope: float = 1.0


@dataclass(frozen=True)
class NoFacts(TypedOp):
    pass


@dataclass(frozen=True)
class NoOperator:
    name = "NoOperator"

    def output_facts(self, inputs):
        return (inputs[0],)


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        (Changeable(), "Changeable of module .* is no operator: it is a dataclass that can be changed"),
        (NoDataclass(), "NoDataclass of module .* is no operator: it is no dataclass"),
        (ForgottenField(), "ForgottenField of module .* is no operator: it is no dataclass"),
        (NoFacts(), "NoFacts of module .* is no operator: it has no method output_facts"),
        (NoOperator(), "NoOperator of module .* is no operator: it is not derived from tract_core.model.op.TypedOp"),
        (Neg, "Neg is no operator: it is a class, wanted an instance of it"),
        (3, "int of module builtins is no operator: it is not derived from"),
        (None, "NoneType of module builtins is no operator: it is not derived from"),
    ],
)
def test_what_is_no_operator(op, problem):
    with pytest.raises(FactError, match=problem) as caught:
        model_of(op)
    assert "write it as @dataclass(frozen=True) above class" in str(caught.value.hint)
    assert str(caught.value.where).startswith("node 'mine' (")


@dataclass(frozen=True)
class WithField(ElementWise):
    content: Any


@pytest.mark.parametrize(
    ("content", "kind"), [([1, 2], "list"), ({}, "dict"), (np.ones(2), "ndarray"), (([],), "list")]
)
def test_a_field_that_cannot_be_compared(content, kind):
    with pytest.raises(
        FactError, match=f"WithField of module .* cannot be compared: unhashable type: '(numpy.)?{kind}'"
    ) as caught:
        model_of(WithField(content))
    assert caught.value.hint == "let its fields hold tuples instead of lists, and arrays as tract_core.data.Constant"
    assert model_of(WithField((1, 2)))
    assert model_of(WithField(Constant(np.ones(2))))


@pytest.mark.parametrize("on", [(print,), ("Neg",), (Neg()), (Neg, "Exp")], ids=str)
def test_rewrites_wants_types(on):
    on = on if isinstance(on, tuple) else (on,)
    with pytest.raises(RegistrationError, match=r"@rewrites is given .*, wanted types of operators") as caught:
        rewrites(*on)
    assert caught.value.hint == "write it as @rewrites(Relu), above the function"


def test_rewrites_wants_a_type():
    with pytest.raises(
        RegistrationError, match="@rewrites is given no type of operator, so that it never looks at any"
    ):
        rewrites()


@pytest.fixture
def with_rule() -> Callable[..., Registry]:
    """``with_rule(function)``: a registry with the rule ``mine`` of the plugin ``acme``, which looks at Neg."""

    def make(function: Callable[..., Any], *on: Any) -> Registry:
        rows = Rows()
        rows.add(DECLUTTER, "mine", Rule("mine", on or (Neg,), function))
        return toy_registry("acme", rows={"declutter": toy_rows("acme_rules", rows)})

    return make


def raises(model, node, op):
    return 1 // 0


def loops(model, node, op):
    return ModelPatch.replace_op(model, node, Neg())


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (raises, "ZeroDivisionError"),
    "an operator": (lambda *_: Abs(), "it returned a Abs, wanted a ModelPatch or None"),
    "true": (lambda *_: True, "it returned a bool, wanted a ModelPatch or None"),
    "the model": (lambda model, *_: model, "it returned a TypedModel, wanted a ModelPatch or None"),
    "nothing replaced": (lambda model, *_: ModelPatch(model), "it returned a patch that replaces nothing"),
    "another model": (
        lambda model, node, _: ModelPatch.replace_op(model.clone(), node, Abs()),
        "it returned a patch of another model",
    ),
    "other facts": (
        lambda model, node, _: ModelPatch.replace_op(model, node, Odd(lambda _: (parse_typed_fact("3,4,i64"),))),
        "a patch replaces S,f32 by 3,4,i64",
    ),
    "too many arguments": (lambda _, __: None, "takes 2 positional arguments but 3 were given"),
}


@pytest.mark.parametrize(("function", "problem"), WRONG.values(), ids=WRONG)
def test_a_rule_that_is_wrong_is_left_out_and_the_others_go_on(with_rule, function, problem):
    registry = with_rule(function)
    model = model_of(Neg(), registry)
    with pytest.warns(PluginWarning, match=f"plugin 'acme' of acme: rule mine: .*{problem}"):
        model.declutter()
    assert [node.op.name for node in model.live_nodes()] == ["TypedSource", "Neg"]
    (failure,) = next(record for record in registry.plugins() if record.name == "acme").failures
    assert failure.doing == "rule mine"


@pytest.mark.parametrize(("function", "problem"), WRONG.values(), ids=WRONG)
def test_the_kit_fails_on_a_rule_that_is_wrong(with_rule, function, problem):
    """With the author's traceback, and the rule's name, every time."""
    bench = Bench(REFERENCE_RUNTIME, with_rule(function))
    case = Case("Neg", Neg(), ["S,f32"], np.negative, {"S": 2})
    for check in ("fixed_decluttered", "symbolic_decluttered", "symbolic_decluttered"):
        with pytest.raises(Exception) as caught:  # noqa: PT011 (what it is, is compared below)
            CHECKS[check](case, bench)
        assert re.search(problem.replace("S,f32", "[S2],f32"), "".join(traceback.format_exception(caught.value)))
        assert "while rule mine of acme looked at node" in caught.value.__notes__[0]
    if function is raises:
        assert "return 1 // 0" in "".join(traceback.format_exception(caught.value))
    CHECKS["fixed"](case, bench)
    with pytest.raises(Exception):  # noqa: B017, PT011 (the same)
        checked_declutter(model_of(Neg(), bench.registry))


def test_a_rule_without_end_is_named(with_rule):
    with pytest.raises(
        GraphError, match=r"the rules do not come to an end; applied most: rule mine of acme \(\d+ times\)"
    ):
        model_of(Neg(), with_rule(loops)).declutter()


def test_a_rule_on_a_text_is_refused_and_the_others_go_on(with_rule):
    registry = with_rule(lambda *_: None, "Neg")
    with pytest.warns(PluginWarning, match="the row of acme for mine is given 'Neg', wanted types of operators"):
        model_of(Exp(), registry).declutter()
    assert "mine" not in registry[DECLUTTER].rows()


def test_a_row_wants_its_table_first():
    rows = Rows()
    with pytest.raises(RegistrationError, match="a row names its table first, as REFERENCE; found Neg") as caught:
        rows.row(Neg, REFERENCE)
    assert caught.value.hint == "write it as @ROWS.row(REFERENCE, Op), or ROWS.add(REFERENCE, Op, function)"
    with pytest.raises(RegistrationError, match="a row names its table first, as REFERENCE; found 'reference'"):
        rows.add("reference", Neg, print)
    for key in (Neg(), REFERENCE, 3, None):
        with pytest.raises(RegistrationError, match="the key of a row is a class or a text, found "):
            rows.row(REFERENCE, key)
    assert not len(rows)


@pytest.mark.parametrize(
    ("row", "found"),
    [(Case("Neg", Neg(), [], np.negative), "one Case"), (None, "a NoneType"), ([3], "a list"), ("Neg", "a str")],
)
def test_cases_are_a_list(row, found):
    with pytest.raises(RegistrationError, match=f"the row of acme for neg is {found}, wanted a list of Case"):
        Table(CASES).check([Row("cases", "neg", row)], "acme")


@dataclass(frozen=True)
class Doubles(ElementWise):
    """2*x, by doubling what it was given."""


@pytest.mark.parametrize("behind", [0, 1], ids=["an input of the model", "an intermediate tensor"])
def test_nobody_writes_to_what_others_read(behind):
    def doubled(op, x):
        x *= 2
        return x

    rows = Rows()
    rows.add(REFERENCE, Doubles, doubled)
    model = TypedModel(registry=toy_registry("acme", rows={"reference": toy_rows("acme_ops", rows)}))
    x = model.add_source("x", parse_typed_fact("3,f32"))
    for step in range(behind):
        (x,) = model.wire_node(f"neg{step}", Neg(), [x])
    model.set_outputs([*model.wire_node("mine", Doubles(), [x]), x])
    given = np.ones(3, np.float32)
    with pytest.raises(
        RunError, match=r"node 'mine' \(Doubles\): the operator writes to its inputs: .*read-only"
    ) as caught:
        TypedSimplePlan(model).run([given])
    assert "defect of acme" in str(caught.value.hint)
    assert given.tolist() == [1, 1, 1]
    assert given.flags.writeable
