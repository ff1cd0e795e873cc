"""What the code of a kernel depends on: each field of a plan, at any depth, changes the text and the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest
from golden_models import GOLDEN
from test_other_processors import NEON, kernels
from tract_cpu.compile import compiled
from tract_cpu.kernels.code import code_of
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Target
from tract_llvm.elements.expressions import Expression
from tract_llvm.elements.plan_text import plan_text
from tract_llvm.isa import ISAS
from tract_llvm.language.types import F64, I8, ElementType

from tract_core.data import Constant


@pytest.fixture(scope="module")
def plans() -> dict[type, KernelPlan]:
    """One of each class, the one that says the most."""
    found = [one for group in kernels(NEON).values() for one in group]
    for build in GOLDEN.values():
        for isa in (NEON, ISAS[-1]):
            steps = compiled(build(), Target(isa, 2)).program.steps
            found += [step.kernel for step in steps if isinstance(step, NativeStep)]
    return {type(one): one for one in sorted(found, key=lambda one: len(plan_text(one)))}


SIMPLE: dict[type, Callable[[Any], Any]] = {
    bool: lambda one: not one,
    type(None): lambda one: one is None,
    int: lambda one: one + 1,
    float: lambda one: one + 1,
    str: lambda one: f"{one}x",
    ElementType: lambda one: I8 if one == F64 else F64,
    Constant: lambda one: Constant(one.array + 1),
}


def changed(value: Any) -> Iterator[Any]:
    """Values of the same kind that are others: one for each thing that ``value`` says."""
    if type(value) in SIMPLE:
        yield SIMPLE[type(value)](value)
    elif isinstance(value, Enum):
        yield from (one for one in type(value) if one is not value)
    elif isinstance(value, Expression):
        yield replace(value, inputs=(*value.inputs, F64))
        yield from (replace(value, steps=steps) for steps in changed(value.steps) if value.steps)
    elif isinstance(value, tuple):
        yield (*value, value[0] if value else 1)
        for place, one in enumerate(value):
            yield from ((*value[:place], other, *value[place + 1 :]) for other in changed(one))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from (replace(value, **{field.name: other}) for other in changed(getattr(value, field.name)))
    elif callable(value):
        yield plan_text


def test_each_field_of_each_plan_changes_its_text_and_the_key_of_its_code(plans: dict[type, KernelPlan]) -> None:
    assert len(plans) > 25
    for plan in plans.values():
        text, key = plan_text(plan), code_of(plan, NEON).key
        for field in fields(plan):  # pyright: ignore[reportArgumentType] # every plan is a dataclass
            for other in list(changed(getattr(plan, field.name))) or [None]:  # what has no fields is left out
                one = replace(plan, **{field.name: other})  # pyright: ignore[reportArgumentType] # as above
                assert plan_text(one) != text, (field.name, other)
                assert key_of(one) != key, (field.name, other)


def key_of(plan: KernelPlan) -> Any:
    return code_of(plan, NEON).key


def test_equal_plans_have_equal_texts(plans: dict[type, KernelPlan]) -> None:
    for plan in plans.values():
        assert plan_text(replace(plan)) == plan_text(plan)  # pyright: ignore[reportArgumentType] # as above


def test_what_nothing_tells_from_others_is_refused() -> None:
    with pytest.raises(TypeError, match="the code of a kernel cannot depend on"):
        plan_text([1])
