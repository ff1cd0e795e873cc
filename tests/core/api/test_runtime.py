"""Finding runtimes, and what happens when one misbehaves."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tract_core import Model, Runtime, runtime_for_name
from tract_core.api.runtime import runtime_with
from tract_core.data import Constant
from tract_core.errors import InputError, LimitExceeded, PluginError, RunError, TractError, Unsupported
from tract_core.model import TypedModel
from tract_core.plugins import PluginState, Registry
from tract_core.plugins.descriptor import RuntimeOffer
from tract_core.runtime.explain import Explanation
from tract_core.testing.toys import toy_registry

Maker = Callable[[], Model]


class ToyRuntime:
    """Doubles every input; knows nothing else."""

    name = "toy"
    reason: str | None = None

    def why_unusable(self) -> str | None:
        return self.reason

    def prepare(self, model: TypedModel) -> Any:
        return ToyPlan()


class ToyPlan:
    def spawn(self) -> Any:
        return self

    def explain(self) -> Explanation:
        return Explanation("toy", ())

    def run(self, inputs: list[Any]) -> list[Any]:
        return [array * 2 for array in inputs]

    def freeze(self) -> Any:
        return None

    def thaw(self, frozen: Any) -> None:
        raise ZeroDivisionError


class Unusable(ToyRuntime):
    reason = "driver 470 is older than 525"


class BrokenAtPrepare(ToyRuntime):
    def prepare(self, model: TypedModel) -> Any:
        raise KeyError("oops")


class BrokenAtRun(ToyRuntime):
    def prepare(self, model: TypedModel) -> Any:
        class Plan(ToyPlan):
            def run(self, inputs: list[Any]) -> list[Any]:
                raise OverflowError("no more")

        return Plan()


class OutOfMemory(ToyRuntime):
    def prepare(self, model: TypedModel) -> Any:
        class Plan(ToyPlan):
            def run(self, inputs: list[Any]) -> list[Any]:
                raise MemoryError("no more")

        if "prepare" in model.properties:
            raise MemoryError("no more")
        return Plan()


class Picky(ToyRuntime):
    def prepare(self, model: TypedModel) -> Any:
        raise Unsupported("toy has no kernel for Mul (node 'scaled')")


@dataclass(frozen=True)
class Tunable(ToyRuntime):
    """Has options."""

    threads: int = field(default=1, metadata={"doc": "how many work at once"})
    layout: str = "plain"

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, wanted 1 or more")


def _registry(**classes: str | RuntimeOffer) -> Registry:
    offers = {name: one if isinstance(one, RuntimeOffer) else f"{__name__}:{one}" for name, one in classes.items()}
    return toy_registry("toys", runtimes=offers)


def test_names() -> None:
    assert runtime_for_name("reference").name() == "reference"
    assert runtime_for_name("default").name() in ("reference", "cpu")
    assert isinstance(runtime_for_name("reference"), Runtime)
    assert repr(runtime_for_name("reference")) == "Runtime('reference')"


def test_default_without_a_compiler_is_the_reference(affine: Maker) -> None:
    registry = _registry()
    assert runtime_for_name("default", registry).name() == "reference"


def _ranked(kind: str, rank: int) -> RuntimeOffer:
    return RuntimeOffer(f"{__name__}:{kind}", rank)


def test_default_is_what_has_the_highest_rank() -> None:
    assert runtime_for_name("default", _registry(fast=_ranked("ToyRuntime", 10))).name() == "toy"
    assert runtime_for_name("default", _registry(slow=_ranked("ToyRuntime", -1))).name() == "reference"
    assert runtime_for_name("default", _registry(unranked="ToyRuntime")).name() == "reference"


@pytest.mark.parametrize(
    ("name", "options"),
    [("tunable(threads=2)", {}), ("tunable", {"threads": 2}), ("tunable( threads = 2, layout=plain )", {})],
)
def test_options_are_given_in_the_name_or_beside_it(name: str, options: dict[str, Any]) -> None:
    runtime = runtime_for_name(name, _registry(tunable="Tunable"), **options)
    assert runtime.backend == Tunable(threads=2)
    assert runtime.options() == {"threads": 2}
    assert repr(runtime) == "Runtime('toy', threads=2)"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("tunable(thread=2)", "tunable has no parameter 'thread'; its parameters: threads, layout"),
        ("tunable(threads=0)", "tunable: threads is 0, wanted 1 or more"),
        ("tunable(threads", "cannot be read: the closing parenthesis is missing"),
        ("tunable(2)", "cannot be read: '2' gives no parameter a value"),
        ("tunable(threads=1, threads=2)", "'threads' is given twice"),
        ("reference(threads=2)", "reference has no parameter 'threads'; its parameters: none"),
    ],
)
def test_options_that_cannot_be(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=re.escape(problem)):
        runtime_for_name(name, _registry(tunable="Tunable"))


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("tunable", {"threads": 2}),
        ("tunable(threads=3)", {"threads": 3}),
        ("tunable(threads=1)", {}),  # said, although it is the default
        ("tunable(layout=packed)", {"threads": 2, "layout": "packed"}),
        ("reference", {}),
    ],
)
def test_wishes_are_options_where_they_are_known_and_not_said(name: str, taken: dict[str, Any]) -> None:
    registry = _registry(tunable="Tunable")
    assert runtime_with(name, registry, threads=2, tiles=8).options() == taken
    without = {key: value for key, value in taken.items() if value != 2}
    assert runtime_with(name, registry, threads=None).options() == without
    assert runtime_with(name, registry).options() == without


def test_an_unusable_default_is_not_replaced_in_silence() -> None:
    with pytest.raises(
        PluginError, match=r"runtime 'cpu' does not work here: driver 470.*\n  hint: ask for 'reference'"
    ):
        runtime_for_name("default", _registry(cpu=_ranked("Unusable", 10)))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cuda", "tract-cuda is installed, but not in use: 'tract plugins' says why"),
        ("metal", "tract-metal is installed, but not in use"),
        ("gpu", "tract-cuda is installed, but not in use"),
        ("referense", "did you mean 'reference'"),
        ("quantum", "'default' is the best CPU runtime that is installed"),
        ("REFERENCE", "did you mean 'reference'"),
    ],
)
def test_unknown_names(name: str, hint: str) -> None:
    problem = rf"runtime '{name}' is not installed; installed runtimes: default, reference\n  hint: {hint}"
    with pytest.raises(PluginError, match=problem):
        runtime_for_name(name, Registry(discover=False))


@pytest.mark.parametrize("name", [None, 3, b"default"])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(InputError, match="a runtime is asked for by its name, a text"):
        runtime_for_name(name)


def test_a_plugin_runs(affine: Maker) -> None:
    runtime = runtime_for_name("toy", _registry(toy="ToyRuntime"))
    assert runtime.name() == "toy"
    runnable = runtime.prepare(affine())
    assert runnable.run([np.ones((1, 3), np.float32)])[0].to_numpy().tolist() == [[2, 2, 2]]
    assert runnable.explain().runtime == "toy"


def test_a_gpu_is_the_first_that_works() -> None:
    tunable, toy = RuntimeOffer(f"{__name__}:Tunable"), RuntimeOffer(f"{__name__}:ToyRuntime")
    unusable = RuntimeOffer(f"{__name__}:Unusable")
    assert isinstance(runtime_for_name("gpu", _registry(metal=unusable, cuda=tunable)).backend, Tunable)
    assert not isinstance(runtime_for_name("gpu", _registry(metal=toy, cuda=tunable)).backend, Tunable)
    assert runtime_for_name("gpu(threads=3)", _registry(cuda=tunable)).options()["threads"] == 3
    with pytest.raises(
        PluginError, match=r"runtime 'cuda' does not work here: driver 470.*\n  hint: 'gpu-or-cpu' takes"
    ):
        runtime_for_name("gpu", _registry(cuda=unusable))


def test_a_gpu_or_the_default_where_none_works() -> None:
    unusable, tunable = RuntimeOffer(f"{__name__}:Unusable"), RuntimeOffer(f"{__name__}:Tunable")
    assert isinstance(runtime_for_name("gpu-or-cpu", _registry(cuda=tunable)).backend, Tunable)
    assert runtime_for_name("gpu-or-cpu", _registry(cuda=unusable)).name() == "reference"
    assert runtime_for_name("gpu-or-cpu", _registry()).name() == "reference"


def test_unusable_says_why() -> None:
    with pytest.raises(PluginError, match="runtime 'toy' does not work here: driver 470 is older than 525"):
        runtime_for_name("toy", _registry(toy="Unusable"))


def test_what_a_runtime_refuses_reaches_the_user_and_the_model_lives(affine: Maker) -> None:
    model = affine()
    with pytest.raises(Unsupported, match="toy has no kernel for Mul"):
        runtime_for_name("toy", _registry(toy="Picky")).prepare(model)
    assert not model.is_consumed


@pytest.mark.parametrize("kind", ["BrokenAtPrepare", "BrokenAtRun"])
def test_a_broken_runtime_is_blamed(affine: Maker, kind: str) -> None:
    registry = _registry(toy=kind)
    with pytest.raises(PluginError, match=r"of toys failed: (KeyError|OverflowError)"):
        runtime_for_name("toy", registry).prepare(affine()).run([np.ones((1, 3), np.float32)])
    assert {record.name: record.state for record in registry.plugins()}["toys"] is PluginState.FAILED


@pytest.mark.parametrize(("doing", "kind"), [("prepare", LimitExceeded), ("run", RunError)])
def test_nobody_is_blamed_where_there_is_no_memory(affine: Maker, doing: str, kind: type[TractError]) -> None:
    registry, model = _registry(toy="OutOfMemory"), affine()
    model.typed.properties |= {doing: Constant(np.zeros(1))}
    with pytest.raises(kind, match=f"there is not enough memory for the {doing} of runtime 'toy': no more") as caught:
        runtime_for_name("toy", registry).prepare(model).run([np.ones((1, 3), np.float32)])
    assert "max_tensor_bytes" in caught.value.hint
    assert {record.name: record.state for record in registry.plugins()}["toys"] is not PluginState.FAILED


def test_a_broken_state_is_blamed(affine: Maker) -> None:
    state = runtime_for_name("toy", _registry(toy="ToyRuntime")).prepare(affine()).spawn_state()
    with pytest.raises(TractError, match="of toys failed: ZeroDivisionError"):
        state.freeze().unfreeze()


@pytest.mark.parametrize("what", [None, "model.onnx", TypedModel()], ids=type)
def test_only_models_are_prepared(what: Any) -> None:
    with pytest.raises(InputError, match="a runtime prepares a Model, got"):
        runtime_for_name("reference").prepare(what)


def test_operators_without_meaning_are_all_named(running_sum: Any) -> None:
    from dataclasses import dataclass

    from tract_core.model import TypedOp
    from tract_core.model.fact_text import parse_typed_fact

    @dataclass(frozen=True)
    class Mystery(TypedOp):
        number: int

        def output_facts(self, inputs: Any) -> Any:
            return (inputs[0],)

    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("2,f32"))
    (first,) = graph.wire_node("first", Mystery(1), [x])
    graph.set_outputs(graph.wire_node("second", Mystery(2), [first]))
    model = Model.from_typed(graph)
    with pytest.raises(Unsupported, match=r"no NumPy meaning for Mystery"):
        model.into_runnable()
    assert not model.is_consumed


def test_runtimes_pickle() -> None:
    assert pickle.loads(pickle.dumps(runtime_for_name("reference"))).name() == "reference"
