"""What calling a model costs around a plan that does nothing: ``python bench/bench_calling.py [CHECKOUT]``

Prints microseconds of CPU time per call of `State.run` and `Runnable.run`, for one NumPy input and one output, and what
the runtime `cpu` takes to add two numbers, with new outputs and with arrays that are given.
``CHECKOUT``: the folder of another version, whose figures stand beside, with the ratio. Versions take turns, in short
rounds, each in a process of its own; medians of all rounds are printed, those of the ratios too. *With every check* is
a plan that also does what every runtime must do before it computes: it compares types and shapes, binds one symbol, and
looks at what the model was simplified under.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from timeit import timeit
from typing import Any

ROUNDS = 61
NUMBER = 1000
SHAPE = (2, 64)

HERE = Path(__file__).resolve().parents[1]
BOUND = "types, shapes, one symbol bound"
ADDED, FILLED = "two numbers added on cpu", "the same, with out"
CASES = ("State.run", "Runnable.run", "State.run, with every check", BOUND, "of which: binding", ADDED, FILLED)


class NullState:
    """Gives the same output whatever it gets."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def run(self, inputs: Any, out: Any = None) -> list[Any]:
        return [self.output]


class CheckingState(NullState):
    """Checks what every runtime must. ``host``: a `HostState`."""

    def __init__(self, output: Any, turn: Any, host: Any) -> None:
        super().__init__(output)
        self.turn = turn
        self.host = host

    def run(self, inputs: Any, out: Any = None) -> list[Any]:
        self.turn.begin(self.host, inputs, out)
        return [self.output]


class NullPlan:
    """A plan that does nothing. ``turn``: what checks the inputs, if anything; ``make_host``: makes a `HostState`."""

    def __init__(self, output: Any, turn: Any = None, make_host: Any = None) -> None:
        self.output = output
        self.turn = turn
        self.make_host = make_host

    def spawn(self) -> NullState:
        if self.turn is None:
            return NullState(self.output)
        return CheckingState(self.output, self.turn, self.make_host())


def cases() -> dict[str, Callable[[], Any]]:
    """What is measured, by name, on the version that this process imports."""
    import numpy as np

    from tract_core.api.runnable import Runnable
    from tract_core.api.runtime import runtime_for_name
    from tract_core.data import DatumType
    from tract_core.dims import symbol
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel
    from tract_core.ops.elementwise import Exp
    from tract_core.runtime.plan import TypedSimplePlan

    model = TypedModel()
    source = model.add_source("x", TypedFact.of(DatumType.F32, (symbol("B"), 64)))
    model.set_outputs(model.wire_node("y", Exp(), [source]))
    runtime = runtime_for_name("reference")
    x, y = np.ones(SHAPE, np.float32), np.zeros(SHAPE, np.float32)

    runnable = Runnable(model, NullPlan(y), runtime)
    found = _two_numbers() | {
        "State.run": _calling(runnable.spawn_state(), x),
        "Runnable.run": _calling(runnable, x),
    }
    try:
        from tract_core.runtime.binding_plan import BindingPlan
        from tract_core.runtime.host import Bodies, HostState, host_nodes
        from tract_core.runtime.turn import Turn
    except ImportError:  # an older version
        from tract_core.runtime.misfits import bind_inputs

        names, facts = ["x"], [model.outlet_fact(source)]
        return found | {BOUND: lambda: bind_inputs(names, facts, [x])}
    turn = Turn(model, host_nodes(model))
    found[BOUND] = lambda: turn.bind([x])
    plan_of_binding, shapes = BindingPlan.of([model.outlet_fact(source)]), [SHAPE]
    found["of which: binding"] = lambda: plan_of_binding.values(shapes)
    if hasattr(HostState, "reset"):
        plan = NullPlan(y, turn, lambda: HostState(model, Bodies(TypedSimplePlan)))
        state = Runnable(model, plan, runtime).spawn_state()
        found["State.run, with every check"] = _calling(state, x)
    return found


def _two_numbers() -> dict[str, Callable[[], Any]]:
    """What the runtime `cpu` does with the smallest model."""
    import numpy as np

    import tract_core as tract
    from tract_core.data import DatumType
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel
    from tract_core.ops.binary import Add

    model = TypedModel()
    inputs = [model.add_source(name, TypedFact.of(DatumType.F32, ())) for name in ("a", "b")]
    model.set_outputs(model.wire_node("y", Add(), inputs))
    run = tract.runtime_for_name("cpu", threads=1).prepare(tract.Model(model)).run
    given, filled = [np.array(1, np.float32), np.array(2, np.float32)], [np.zeros((), np.float32)]
    assert run(given)[0].item() == run(given, out=filled)[0] == 3
    return {ADDED: lambda: run(given), FILLED: lambda: run(given, out=filled)}


def _calling(called: Any, x: Any) -> Any:
    run = called.run
    assert run([x])[0].to_numpy().tolist() == [[0.0] * 64] * 2
    return lambda: run([x])


def answer() -> None:
    """The child: measures one round, in microseconds, whenever a line comes in."""
    calls = cases()
    for call in calls.values():
        _microseconds(call)
    for _ in sys.stdin:
        figures = {name: _microseconds(call) for name, call in calls.items()}
        print(figures, flush=True)


def _microseconds(call: Callable[[], Any]) -> float:
    return timeit(call, timer=process_time, number=NUMBER) / NUMBER * 1e6


class Version:
    """One checkout, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        paths = [folder, *(folder / "plugins").glob("tract_*")]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, __file__, "--answer"]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=variables
        )
        self.rounds: list[dict[str, float]] = []

    def measure(self) -> None:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        print(file=self.child.stdin, flush=True)
        self.rounds.append(eval(self.child.stdout.readline()))

    def figures(self, case: str) -> list[float]:
        return [figures[case] for figures in self.rounds if case in figures]

    def close(self) -> None:
        self.child.communicate()


def main() -> None:
    if sys.argv[1:] == ["--answer"]:
        answer()
        return
    versions = [Version(Path(folder).resolve()) for folder in [HERE, *sys.argv[1:]]]
    for _ in range(ROUNDS):
        for version in versions:
            version.measure()
    for version in versions:
        version.close()
    print(f"microseconds per call{', then of the other version, and the ratio' if versions[1:] else ''}")
    for case in CASES:
        ours, *others = [version.figures(case) for version in versions]
        beside = [_beside(ours, other) if other else " " * 16 for other in others]
        print(f"{statistics.median(ours):7.2f}{''.join(beside)}  {case}")


def _beside(ours: list[float], others: list[float]) -> str:
    ratio = statistics.median(one / other for one, other in zip(ours, others, strict=True))
    return f"  {statistics.median(others):7.2f}  {ratio:5.2f}"


if __name__ == "__main__":
    main()
