"""Recurrent networks as one kernel for all steps, as the interpreter runs them; those that do not fit, as launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from on_virtual import device
from tract_cuda.kernels.recurrence import RecurrencePlan
from tract_cuda.language.arch import ARCHS, Arch, arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.program import Repeat, launches_in
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts

from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.activation import SIGMOID, TANH
from tract_core.ops.gather import Gather
from tract_core.ops.recurrent_wiring import Direction, RecurrentInputs, RecurrentOptions, wire_gru, wire_lstm, wire_rnn
from tract_core.runtime.plan import TypedSimplePlan

TARGET = Target(arch_named("sm_80") or pytest.fail("there is none"), 4)
GATES = {wire_lstm: 4, wire_gru: 3, wire_rnn: 1}
FORWARD = RecurrentOptions()
LINEAR = {"linear_before_reset": True}


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def network(
    wire: Callable[..., Sequence[OutletId]],
    hidden: int,
    options: RecurrentOptions = FORWARD,
    more: Sequence[str] = (),
    *,
    x: str = "T,B,5,f32",
    **flags: bool,
) -> TypedModel:
    """``more``: inputs that there are besides: an initial state, peepholes, lengths, a projection."""
    rng, model = np.random.default_rng(0), TypedModel()
    ways, gates = len(options.direction.backward), GATES[wire]
    given = 3 if "projection" in more else hidden

    def weights(*shape: int) -> OutletId:
        return model.add_const(f"w{len(model.nodes)}", (rng.standard_normal(shape) / np.sqrt(hidden)).astype("f4"))

    found = RecurrentInputs(
        source(model, "x", x), weights(ways, gates * hidden, 5), weights(ways, gates * hidden, given)
    )
    found = replace(found, bias=weights(ways, 2 * gates * hidden))
    if "initial" in more:
        found = replace(found, initial_h=source(model, "h", f"{ways},B,{given},f32"))
    if "peepholes" in more:
        found = replace(found, peepholes=weights(ways, 3 * hidden))
    if "projection" in more:
        found = replace(found, projection=weights(ways, given, hidden))
    if "lengths" in more:
        found = replace(found, lengths=source(model, "lengths", "B,i64"))
    model.set_outputs(wire(model, "net", options, found, **flags))
    return model.declutter()


def launches(plan: CudaPlan) -> list[str]:
    return [one.kernel.name for one in launches_in(plan.program.steps)]


def in_one_kernel(model: TypedModel, target: Target = TARGET, seed: int = 0) -> CudaPlan:
    """The plan of a network, each direction of which is one kernel."""
    plan = CudaPlan(model, device(seed), target)
    assert not plan.hosted()
    assert "recurrence" in launches(plan)
    assert all(isinstance(step.count, int) or "T" not in str(step.count) for step in repeats(plan))
    return plan


def repeats(plan: CudaPlan) -> list[Repeat]:
    return [step for step in plan.program.steps if isinstance(step, Repeat)]


def close(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    for one, right in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=2e-6)


def inputs_of(model: TypedModel, steps: int, batch: int, seed: int = 1) -> list[np.ndarray]:
    rng, found = np.random.default_rng(seed), list[np.ndarray]()
    for outlet in model.inputs:
        fact = model.outlet_fact(outlet)
        shape = tuple({"T": steps, "B": batch}.get(str(size), size) for size in fact.shape)
        whole = fact.datum_type.numpy.kind == "i"
        found.append(rng.integers(0, steps + 1, shape) if whole else rng.standard_normal(shape).astype("f4"))
    return found


USUAL: dict[str, tuple[Any, ...]] = {
    "lstm": (wire_lstm, 6),
    "lstm, backward": (wire_lstm, 6, RecurrentOptions(Direction.REVERSE), ["initial"]),
    "lstm, both ways": (wire_lstm, 5, RecurrentOptions(Direction.BIDIRECTIONAL), ["initial"]),
    "lstm with peepholes": (wire_lstm, 6, FORWARD, ["peepholes"]),
    "lstm of some lengths": (wire_lstm, 6, RecurrentOptions(Direction.BIDIRECTIONAL), ["lengths", "initial"]),
    "lstm, clipped": (wire_lstm, 6, RecurrentOptions(clip=0.25)),
    "lstm, other activations": (wire_lstm, 6, RecurrentOptions(activations=(TANH, SIGMOID, TANH))),
    "lstm, batch first": (wire_lstm, 6, RecurrentOptions(batch_first=True), (), {"x": "B,T,5,f32"}),
    "lstm of one unit": (wire_lstm, 1),
    "lstm of 33 units": (wire_lstm, 33, FORWARD, ["initial"]),
    "lstm, forget by input": (wire_lstm, 6, FORWARD, (), {"input_forget": True}),
    "gru": (wire_gru, 7, FORWARD, ["initial"], LINEAR),
    "gru, both ways": (wire_gru, 2, RecurrentOptions(Direction.BIDIRECTIONAL), ["lengths"], LINEAR),
    "rnn": (wire_rnn, 6, FORWARD, ["initial"]),
    "rnn of 130 units": (wire_rnn, 130),
}


def made(name: str) -> TypedModel:
    wire, hidden, *rest = USUAL[name]
    options, more, flags = (*rest, *(FORWARD, (), {})[len(rest) :])
    return network(wire, hidden, options, more, **flags)


@pytest.mark.parametrize("name", USUAL)
def test_networks_in_one_kernel(name: str) -> None:
    model = made(name)
    plan = in_one_kernel(model)
    for steps, batch in ((5, 3), (1, 1), (2, 2), (0, 2), (3, 0)):
        inputs = inputs_of(model, steps, batch)
        close(plan.run(inputs), TypedSimplePlan(model).run(inputs))


@pytest.mark.parametrize("batch", [1, 4, 6, 9])
def test_blocks_of_several_rows_some_of_which_are_not_there(batch: int) -> None:
    model = network(wire_lstm, 6, x=f"T,{batch},5,f32")
    plan = in_one_kernel(model, replace(TARGET, multiprocessors=1))
    (kernel,) = (one.kernel for one in launches_in(plan.program.steps) if isinstance(one.kernel, RecurrencePlan))
    assert kernel.rows == min(batch, 4)
    inputs = inputs_of(model, 4, batch)
    close(plan.run(inputs), TypedSimplePlan(model).run(inputs))


def test_no_order_of_threads_changes_a_bit() -> None:
    model = made("lstm of 33 units")
    inputs = inputs_of(model, 3, 2)
    found = {b"".join(one.tobytes() for one in in_one_kernel(model, seed=seed).run(inputs)) for seed in range(20)}
    assert len(found) == 1


def test_numbers_that_are_none_stay_in_their_rows() -> None:
    model = made("lstm")
    inputs = inputs_of(model, 4, 4)
    inputs[0][1, 0, 0], inputs[0][2, 1, 1], inputs[0][0, 2, 2] = np.nan, np.inf, -np.inf
    found, wanted = in_one_kernel(model).run(inputs), TypedSimplePlan(model).run(inputs)
    assert np.isnan(found[0]).any()
    assert not np.isnan(found[0][:, :, 3]).any()
    close(found, wanted)


@pytest.mark.parametrize("name", ["lstm", "gru, kept", "rnn of 130 units"])
def test_states_stay_from_turn_to_turn(name: str) -> None:
    model = network(wire_gru, 4, **LINEAR) if name == "gru, kept" else made(name)
    plan, meaning = in_one_kernel(model), TypedSimplePlan(model)
    state, right = plan.spawn(), meaning.spawn()
    for turn, steps in enumerate((2, 1, 0, 3, 2)):
        inputs = inputs_of(model, steps, 2, seed=turn)
        close(state.run(inputs), right.run(inputs))
        if turn == 2:
            frozen, told = state.freeze(), right.freeze()
            state, right = plan.spawn(), meaning.spawn()
            state.thaw(told)
            right.thaw(frozen)


def test_a_turn_that_is_refused_leaves_the_state() -> None:
    model = made("lstm")
    rows = source(model, "rows", "1,i64")
    model.set_outputs([*model.wire_node("picked", Gather(0), [model.outputs[0], rows])])
    state, right = in_one_kernel(model).spawn(), TypedSimplePlan(model).spawn()
    for turn, row in enumerate((0, 5, 1)):
        (x,) = inputs_of(model, 2, 1, seed=turn)[:1]
        if row > 1:
            with pytest.raises(RunError, match="index 5 is outside axis 0"):
                state.run([x, np.array([row])])
        else:
            close(state.run([x, np.array([row])]), right.run([x, np.array([row])]))


OTHERS: dict[str, tuple[Any, ...]] = {
    "weights without room": (wire_lstm, 128),
    "two products": (wire_gru, 6),
    "a projection": (wire_lstm, 6, FORWARD, ["projection"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_launched_step_by_step(name: str) -> None:
    wire, hidden, *rest = OTHERS[name]
    model = network(wire, hidden, *rest)
    plan = CudaPlan(model, device(0), TARGET)
    assert "recurrence" not in launches(plan)
    assert [str(step.count) for step in repeats(plan)][-1] == "T"
    inputs = inputs_of(model, 2, 1)
    close(plan.run(inputs), TypedSimplePlan(model).run(inputs))


def plan_for(name: str, arch: Arch) -> RecurrencePlan:
    (kernel,) = {
        one.kernel
        for one in launches_in(CudaPlan(made(name), device(0), Target(arch, 132)).program.steps)
        if isinstance(one.kernel, RecurrencePlan)
    }
    return kernel


@pytest.mark.parametrize("name", ["lstm", "lstm of 33 units", "gru", "rnn of 130 units"])
def test_shared_memory_is_what_plans_say(name: str) -> None:
    plan = plan_for(name, TARGET.arch)
    asked = written(plan, TARGET.arch).shared_bytes
    assert plan.shared_bytes - 128 * (len(plan.states) + 1) <= asked <= plan.shared_bytes
    assert plan.pitch % 32 == plan.parts


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", ["lstm with peepholes", "gru", "lstm of 33 units"])
def test_kernels_have_registers_enough(name: str, arch: Arch) -> None:
    found = facts(written(plan_for(name, arch), arch), arch)
    assert (found.spilled, found.stack) == (0, 0)
    assert found.registers <= 96
