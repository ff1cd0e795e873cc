"""An archive against the module that it was made of, in this process, on the runtimes of this project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

import tract_core as tract
from tract_core.data.scratch import large_values_in
from tract_core.dims import evaluate, is_symbolic
from tract_core.errors import InputError, TractError
from tract_core.plugins import default_registry
from tract_core.runtime.misfits import bind_inputs
from tract_torch.arguments import chosen, module_of, path_of
from tract_torch.check.draw import drawn, larger_sizes, sizes_of, smallest_sizes
from tract_torch.check.eager import EagerCall, Start, turn_of
from tract_torch.check.interface import Interface, held_inputs, held_tensors
from tract_torch.errors import CheckError
from tract_torch.example import Example
from tract_torch.report import CheckReport, Refusal, Trial
from tract_torch.tolerance import Difference, TractCheckTolerance, difference
from tract_torch.wiring.lowering import Lowering

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.api.state import State

Array = np.ndarray[Any, Any]
DynamicAxes = Mapping[str, "Mapping[int, str] | Sequence[int]"]
Tensors = Mapping[str, torch.Tensor]

SEEDS: Final = (1, 2)
"""Which random inputs are compared besides the example."""

WANTED: Final = 2
"""Values of each symbol besides that of the example."""

TURNS: Final = 3
"""Calls in a row of a module that changes its buffers, each time from what they hold in the module."""


_NAMES: Final = "give the names of the archive, or none"


def check_io(
    model: torch.nn.Module,
    archive: str | os.PathLike[str],
    args: Any,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: DynamicAxes | None = None,
    tolerance: TractCheckTolerance | str = TractCheckTolerance.APPROXIMATE,
    runtime: str | None = None,
    seeds: Sequence[int] = SEEDS,
    sizes: Sequence[Mapping[str, int]] | None = None,
    find_module: bool = True,
    lowering: Lowering | None = None,
) -> CheckReport:
    """Run an archive and the module that it was made of on the same inputs, and compare all outputs.

    The inputs: the example itself, ``args``, as `export_model_to_nnef` takes it; random ones like it, one for each of
    ``seeds``; and random ones of other sizes, ``sizes`` where that is given, else two values of each symbol of the
    archive at the least and the smallest that its assertions allow. ``input_names``: as there; ``output_names``: one
    per tensor; ``dynamic_axes``: which axes of inputs were asked to be dynamic. ``runtime``: the name of the one to
    use, by default ``cpu`` where it is installed, else ``reference``.

    What is computed of weights while the archive is loaded, as those of convolutions with batch normalisation in them,
    lies in files without names beside it.

    Where the module changes its buffers, several calls in a row are compared. An archive that has inputs and outputs
    for buffers is given what they hold in the module, and its outputs are compared with what they hold afterwards; any
    other has to keep them itself.

    The module, its mode, its buffers and the random numbers of the process stay as they are. Sizes that the module
    itself does not take are noted in the report, those that the archive refuses are an error, unless they are 1: that
    is a number of which `torch.export` assumes that no dynamic size is it.

    Raises CheckError, saying what differs, where, and with ``find_module`` the first module in which it does; for that,
    ``lowering`` says how the archive was made, where not by default.
    """
    runtime = runtime or ("cpu" if "cpu" in default_registry().runtimes() else "reference")
    module_of(model)
    path = path_of(archive, "archive")
    report = CheckReport(str(path), runtime, chosen(TractCheckTolerance, tolerance, "tolerance"))
    with large_values_in(path.parent):  # where as much was written just now
        loaded = tract.load(str(path))
        runnable = tract.runtime_for_name(runtime).prepare(loaded)
    check: _Check | None = None
    try:
        check = _Check.of(report, model, args, runnable, input_names)
        check.names(output_names)
        check.declared_axes(dynamic_axes or {})
        check.example_and_seeds(seeds)
        check.other_sizes(sizes)
    except CheckError as error:
        error.report = report
        if find_module and check is not None and check.wrong is not None:
            text = check.first_difference(check.wrong, lowering)
            report.notes.append(text)
            error.problem = f"{error.problem}\n  {text}"
        raise error.at(report.archive) from error.__cause__
    return report


class _Check:
    """One check in the making. ``first``: what the buffers hold in the module that are inputs of the archive.

    ``wrong``: what the calls started from up to the one whose outputs differ, once they do.
    """

    def __init__(
        self,
        report: CheckReport,
        model: torch.nn.Module,
        example: Example,
        runnable: Runnable,
        interface: Interface,
    ) -> None:
        self.report = report
        self.model = model
        self.example = example
        self.runnable = runnable
        self.interface = interface
        self.typed = runnable.typed
        self.first = held_tensors(model, interface.held.values())
        self.wrong: list[Start] | None = None
        self.facts = [self.typed.outlet_fact(outlet) for outlet in self.typed.inputs]
        try:
            given = interface.given(Start(example, self.first))
            self.symbols = bind_inputs(runnable.input_names(), self.facts, given)
        except InputError as error:
            raise CheckError(f"it does not take the example's inputs: {error.problem}", where=error.where) from None

    @staticmethod
    def of(
        report: CheckReport, model: torch.nn.Module, args: Any, runnable: Runnable, names: Sequence[str] | None
    ) -> _Check:
        """One with the example ``args``, whose tensors have these names. Raises CheckError where inputs do not fit."""
        inputs, outputs = tuple(runnable.input_names()), tuple(runnable.output_names())
        held = held_inputs(model, inputs, outputs)
        there = [name for name in inputs if name not in held]
        example = _example(model, args, names and [name for name in names if name not in held], there)
        arguments = _arguments(there, example.names, in_order=names is None)
        return _Check(report, model, example, runnable, Interface(inputs, outputs, arguments, held))

    def names(self, wanted: Sequence[str] | None) -> None:
        """Raises CheckError where outputs have other names than these."""
        there = self.runnable.output_names()
        if wanted is not None and list(wanted) != there:
            raise CheckError(f"its outputs are {', '.join(there)}, wanted {', '.join(wanted)}", hint=_NAMES)

    def declared_axes(self, dynamic_axes: DynamicAxes) -> None:
        """Raises CheckError where an axis that was declared as dynamic has a fixed size in the archive."""
        for name, fact in zip(self.runnable.input_names(), self.facts, strict=True):
            for axis in dynamic_axes.get(name, ()):
                dim = fact.shape[axis % fact.rank] if -fact.rank <= axis < fact.rank else None
                if dim is not None and not is_symbolic(dim):
                    problem = f"axis {axis} of input {name!r} was declared as dynamic, and always has size {dim}"
                    raise CheckError(problem, hint="the module computes with that size as a number: see its code")

    def example_and_seeds(self, seeds: Sequence[int]) -> None:
        """At the sizes of the example. Where the module refuses other integers, they stay as they are there."""
        own = self.example.tensors()
        self._compare("example", self.symbols, own, 0)
        for seed in seeds:
            reason = ""
            for integers in (None, own):
                try:
                    tensors = self._drawn(self.symbols, seed, integers=integers)
                    self._compare(f"seed {seed}", self.symbols, tensors, seed)
                    break
                except _Refused as refusal:
                    reason = refusal.reason
            else:
                self.report.notes.append(f"seed {seed} was not compared: the module refuses it: {reason}")

    def other_sizes(self, given: Sequence[Mapping[str, int]] | None) -> None:
        """At those that are given, or at as many as are wanted."""
        if given is not None:
            unknown = next((name for values in given for name in values if name not in self.symbols), None)
            if unknown is not None:
                there = f"its symbols are {', '.join(self.symbols)}" if self.symbols else "all its sizes are fixed"
                raise InputError(f"sizes has {unknown!r}, which is no symbol of the archive: {there}")
            for number, values in enumerate(given):
                self._tried({**self.symbols, **values}, number, needed=True)
            return
        if not self.symbols:
            return
        self._until_enough(larger_sizes(self.symbols, self._allowed))
        for name in self.symbols:
            self._until_enough(sizes_of(name, self.symbols, self._allowed), name)
        for number, values in enumerate(smallest_sizes(self.symbols, self._allowed)):
            if self._tried(values, number) and not number:
                break  # all at once
        for name, size in self.symbols.items():
            compared = sorted(self.report.values_of(name))
            if len(compared) <= WANTED:
                listed = ", ".join(map(str, compared))
                self.report.notes.append(f"{name} is {size} in the example, and was compared only at {listed}")

    def _until_enough(self, ways: Iterator[dict[str, int]], name: str | None = None) -> None:
        symbols = [name] if name else list(self.symbols)
        for number, values in enumerate(ways):
            if all(len(self.report.values_of(one)) > WANTED for one in symbols):
                return
            self._tried(values, number)

    def _allowed(self, values: Mapping[str, int]) -> bool:
        """Whether no assertion of the archive is against these values."""
        return all(assertion.holds(values) is not False for assertion in self.typed.symbols.assertions())

    def _drawn(self, values: Mapping[str, int], seed: int, *, integers: Tensors | None = None) -> Tensors:
        """Tensors of these sizes; those that the archive does not take, as they are in the example.

        Where ``integers`` are given, all but floats are as they are there.
        """
        tensors = self.example.tensors()
        for place, (input_, fact) in enumerate(zip(self.interface.inputs, self.facts, strict=True)):
            name = self.interface.arguments.get(input_)
            if name is None:
                continue  # buffers hold what calls before left there
            if integers is not None and not (tensors[name].is_floating_point() or tensors[name].is_complex()):
                tensors[name] = integers[name]
                continue
            shape = [evaluate(dim, values) for dim in fact.shape]
            tensors[name] = drawn(tensors[name], shape, 1000 * seed + place)
        return tensors

    def _tried(self, values: Mapping[str, int], seed: int, *, needed: bool = False) -> bool:
        """Compare at these sizes; whether that was done: neither the module nor the archive refused them."""
        tensors = self._drawn(values, seed)
        try:
            self._compare(f"seed {seed}", values, tensors, seed)
        except _Refused as refusal:
            self.report.refusals.append(Refusal(dict(values), refusal.by, refusal.reason))
            if refusal.by == "archive" and (needed or 1 not in values.values()):
                at = ", ".join(f"{name}={value}" for name, value in values.items())
                hint = "what the sizes must be can be said by an assertion: custom_extensions=['tract_assert S>=2']"
                raise CheckError(f"the module takes {at}, the archive does not: {refusal.reason}", hint=hint) from None
            return False
        return True

    def first_difference(self, turns: Sequence[Start], lowering: Lowering | None) -> str:
        """The first module that differs, in words; where the search fails, that it did."""
        from tract_torch.check.bisect import first_difference

        try:
            found = first_difference(self.model, self.example, turns, self.report, self.interface, lowering=lowering)
        except Exception as error:  # what was found before is to be told in any case
            return f"the search for the first module that differs failed: {_first_line(error)}"
        return str(found) if found is not None else "looked at node by node, nothing differs"

    def _compare(self, inputs: str, values: Mapping[str, int], tensors: Tensors, seed: int) -> None:
        """One run of both, or several in a row where the module changes its buffers, with the same integers.

        Raises CheckError where outputs differ, `_Refused` for sizes that are not the example's.
        """
        state = self.runnable.spawn_state()
        start = Start(self.example.with_tensors(tensors), self.first)
        starts: list[Start] = []
        for number in range(TURNS):
            what = inputs if not number else f"{inputs}, call {number + 1}"
            starts.append(start)
            try:
                turn = self._called(start, own=what == "example")
            except _Refused as refusal:
                if not number:
                    raise
                self.report.notes.append(f"{what}: the module takes no more calls in a row: {refusal.reason}")
                return
            self._compare_turn(what, values, starts, turn, state)
            if not turn.held:
                return
            other = self._drawn(values, seed + (number + 1) * len(self.report.trials), integers=tensors)
            start = Start(self.example.with_tensors(other), {**start.held, **turn.held})

    def _called(self, start: Start, *, own: bool) -> EagerCall:
        """What the module gives. Raises `_Refused`, unless it is called with its ``own`` example."""
        try:
            return turn_of(self.model, start)
        except Exception as error:
            if own:
                raise
            raise _Refused("module", _first_line(error)) from None

    def _compare_turn(
        self, what: str, values: Mapping[str, int], starts: list[Start], turn: EagerCall, state: State
    ) -> None:
        """The last of some calls in a row. Raises CheckError where outputs differ."""
        given = self.interface.given(starts[-1])
        try:
            found = [np.asarray(one) for one in state.run(given)]
        except TractError as error:
            if values == self.symbols:
                raise CheckError(f"it does not run: {error.problem}", where=error.where, hint=error.hint) from error
            raise _Refused("archive", _first_line(error)) from error
        wanted = self.interface.wanted(starts[-1], turn)
        trial = Trial(what, dict(values), tuple(self._differences(found, wanted)))
        self.report.trials.append(trial)
        problems = [f"output {one.name!r}: {one.problem}" for one in trial.outputs if one.problem]
        if problems:
            kept = set(turn.held).difference(self.interface.held.values())
            self.wrong = starts if kept else starts[-1:]
            level = self.report.tolerance.value
            error = CheckError(f"it differs from the module beyond {level!r}, {trial.name}: {'; '.join(problems)}")
            if not kept or len(starts) == 1:  # else nobody can begin with this call
                error.inputs = dict(zip(self.interface.inputs, given, strict=True))
                error.outputs = dict(zip(self.interface.outputs, wanted, strict=True))
            raise error

    def _differences(self, found: Sequence[Array], wanted: Sequence[Array]) -> Iterator[Difference]:
        """Raises CheckError where there are more outputs on one side."""
        names = self.runnable.output_names()
        if len(found) != len(wanted):
            listed = ", ".join(names)
            raise CheckError(f"it has {len(found)} outputs ({listed}), the module returns {len(wanted)}")
        kinds = [self.typed.outlet_fact(outlet).datum_type for outlet in self.typed.outputs]
        for name, kind, ours, theirs in zip(names, kinds, found, wanted, strict=True):
            plain: Any = kind
            yield difference(name, ours, theirs, self.report.tolerance, plain)


class _Refused(Exception):
    """Inputs are not taken. ``by``: "module" or "archive"; ``reason``: what it says."""

    def __init__(self, by: str, reason: str) -> None:
        super().__init__(by, reason)
        self.by, self.reason = by, reason


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__


def _example(model: torch.nn.Module, args: Any, names: Sequence[str] | None, there: Sequence[str]) -> Example:
    """The example, with its tensors under the names of the archive's inputs, where these are given."""
    example = Example.of(model, args, None)
    if names is None:
        return example
    if len(names) == len(example.names) and set(there) <= set(names):
        return replace(example, names=tuple(names))
    return Example.of(model, args, names)


def _arguments(there: Sequence[str], names: Sequence[str], *, in_order: bool) -> dict[str, str]:
    """Which tensor of the example each input of the archive is, by its name, or ``in_order`` of as many."""
    if set(there) <= set(names):
        return {name: name for name in there}
    if not in_order or len(there) != len(names):
        raise CheckError(f"its inputs are {', '.join(there)}, those of the example {', '.join(names)}", hint=_NAMES)
    return dict(zip(there, names, strict=True))
