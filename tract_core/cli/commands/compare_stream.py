"""The work of ``compare --stream``: what comes out pulse by pulse, node by node, against the whole signal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.cli.assertions import Assertions, check_assertions, check_outputs
from tract_core.cli.commands.compare_nodes import as_all_outputs, by_name, conclude, every_tensor, output_names
from tract_core.cli.commands.compare_report import Reference, Verdict, print_verdicts
from tract_core.cli.commands.halves import halves_in
from tract_core.cli.inputs import whole_inputs_for
from tract_core.cli.signals import PULSES, lateness, part, pulses, size_of
from tract_core.dims import symbols_of
from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.parts import Part
from tract_core.runtime.protocol import ObservablePlan, PlanState, running_model
from tract_core.runtime.streams import Streamed, Streams
from tract_core.transforms.transform import StreamingTransform

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.transforms.transform import Transform

Array = np.ndarray[Any, Any]
Pieces = dict[str, list[Array]]
"""What a tensor was in each turn, by its name in the model over pulses."""

MOST_NAMED: Final = 8
"""Names in one line."""


def compare_stream(request: Request, flags: dict[str, Any]) -> None:
    """Print a verdict per tensor. Raises AssertionFailed, naming the first one, when any differs."""
    if flags["runtime"]:
        request = replace(request, runtime=flags["runtime"])
    pair = _loaded(request)
    check_assertions(pair.model, flags)
    arrays = whole_inputs_for(request, pair.model, {**flags, "random": True}, pair.latest + PULSES)
    reference = Reference("the whole signal", _whole_tensors(request, pair, arrays))
    assertions = Assertions.of(flags)
    with request.progress("comparing"):
        verdicts = verdicts_of(request, pair, arrays, reference.tensors, assertions)
    print_verdicts(request, reference, verdicts, flags)
    _tell_squares(request, pair, verdicts, flags)
    conclude(reference, verdicts, () if flags["allow_missing_outputs"] else output_names(pair.model))
    check_outputs(request, pair.model, flags, arrays)


@frozen
class Pair:
    """A model over a whole signal, the one over pulses, and where the tensors of the first are in the second."""

    whole: TypedModel
    model: TypedModel
    streams: Streams
    tensors: Mapping[str, Streamed]

    @property
    def latest(self) -> Fraction:
        """How many pulses go by before the latest of all tensors begins."""
        facts = {name: self.model.outlet_fact(outlet) for outlet, name in _names(self.model).items()}
        return max(
            (lateness(facts[one.tensor], one.end) for one in self.tensors.values() if one.end and one.tensor in facts),
            default=Fraction(0),
        )

    def turns(self, wanted: Mapping[str, Array]) -> int:
        """How many turns it takes until all of each tensor has come. ``wanted``: the tensors over the whole signal."""
        found = 1
        for outlet, name in _names(self.model).items():
            fact = self.model.outlet_fact(outlet)
            for whole, one in self.tensors.items():
                if one.tensor == name and one.end is not None and whole in wanted:
                    length, size = wanted[whole].shape[one.end.axis], size_of(fact, one.end)
                    found = max(found, ceil((one.end.delay + length) / max(size, 1)))
        return found


def _loaded(request: Request) -> Pair:
    """Both models. Raises InputError where no transform makes pulses of a signal."""
    caught: list[tuple[StreamingTransform, TypedModel]] = []

    def note(transform: Transform, model: TypedModel) -> None:
        if isinstance(transform, StreamingTransform):
            caught.append((transform, model))

    request.pipeline.before_transform = note
    model = request.typed_model()
    streams = Streams.of(model)
    if not caught or streams is None:
        raise InputError(
            "--stream compares a model over pulses with the one over the whole signal, and here is only one model",
            hint="say how much of the signal comes at a time, with --pulse 8 or --pulse S=8",
        )
    transform, whole = caught[-1]
    return Pair(whole, model, streams, transform.streams(whole))


def _outlets(model: TypedModel) -> Iterator[OutletId]:
    return (outlet for node in model.live_nodes() for outlet in node.outlets())


def _names(model: TypedModel) -> dict[OutletId, str]:
    """The names of tensors; of two that have one name, as an output and a node on the way to it, the output counts."""
    outputs = {model.outlet_name(outlet): outlet for outlet in model.outputs}
    named = ((outlet, model.outlet_name(outlet)) for outlet in _outlets(model))
    return {outlet: name for outlet, name in named if outputs.get(name, outlet) == outlet}


def _whole_tensors(request: Request, pair: Pair, arrays: Sequence[Array]) -> dict[str, Array]:
    """What the reference runtime computes over the whole signal, by the names of the tensors, outputs included."""
    reference, given = replace(request, runtime="reference"), by_name(pair.model, list(arrays), pair.whole)
    tensors = every_tensor(reference, pair.whole, given)
    outputs = reference.prepare(pair.whole).spawn().run(given)
    return {**dict(zip(output_names(pair.whole), outputs, strict=True)), **tensors}


def verdicts_of(
    request: Request, pair: Pair, arrays: Sequence[Array], wanted: Mapping[str, Array], assertions: Assertions
) -> list[Verdict]:
    """A verdict on each tensor of the whole model, in order of execution.

    Of nodes that the runtime fuses, only what leaves the group is shown. The others are looked at in a program in which
    none are fused, as are all nodes where the runtime shows none.
    """
    plan, turns = request.prepare(pair.model), pair.turns(wanted)
    seen: Pieces = {}
    shown_as = _names(running_model(plan, pair.model))

    def keep(part: Part, outputs: Mapping[OutletId, Array]) -> None:
        for outlet, array in outputs.items():
            if outlet in shown_as:
                seen.setdefault(shown_as[outlet], []).append(np.array(array))

    shows = isinstance(plan, ObservablePlan)
    state = plan.spawn_observed(keep) if isinstance(plan, ObservablePlan) else plan.spawn()
    outputs = _run(pair, state, arrays, turns, output_names(pair.model))
    verdicts = _judged(pair, {**outputs, **seen}, wanted, assertions)
    if not all(one.compared for one in verdicts):
        shown = as_all_outputs(pair.model)
        named = _names(pair.model)
        names = [named.get(outlet, "") for outlet in shown.outputs]
        apart = _judged(pair, _run(pair, request.prepare(shown).spawn(), arrays, turns, names), wanted, assertions)
        verdicts = [
            one if one.compared else replace(other, unfused=shows and other.compared)
            for one, other in zip(verdicts, apart, strict=True)
        ]
    return verdicts


def _run(pair: Pair, state: PlanState, arrays: Sequence[Array], turns: int, names: Sequence[str]) -> Pieces:
    """What a model gives in each turn, by the names of its outputs, with garbage behind the end of the signal."""
    counts = [end and array.shape[end.axis] for end, array in zip(pair.streams.inputs, arrays, strict=True)]
    known = {pair.streams.symbol: pair.streams.symbol_for(counts)}
    found: Pieces = {name: [] for name in names}
    for turn, (given, ended) in enumerate(pulses(pair.model, arrays, garbage)):
        if ended and turn >= turns:
            return found
        outputs = state.run(given, symbols=known) if ended else state.run(given)
        for name, array in zip(names, outputs, strict=True):
            found[name].append(np.array(array))
    raise AssertionError("pulses never end")


def garbage(whole: Array, shape: Sequence[int]) -> Array:
    """What comes behind a signal: not-a-number; where there is none, elements of the signal, from the end on."""
    if whole.dtype.kind == "f" or not whole.size:
        return np.full(shape, np.nan if whole.dtype.kind == "f" else 0, whole.dtype)
    return np.resize(whole.ravel()[::-1], shape)


def _judged(pair: Pair, seen: Pieces, wanted: Mapping[str, Array], assertions: Assertions) -> list[Verdict]:
    outputs, verdicts, halves = output_names(pair.whole), list[Verdict](), halves_in(pair.whole)
    for node_id in pair.whole.eval_order():
        node = pair.whole.nodes[node_id]
        for name in map(pair.whole.outlet_name, node.outlets()):
            if name not in wanted:
                continue
            is_output, there = name in outputs, pair.tensors.get(name)
            pieces = seen.get(there.tensor) if there is not None else None
            if there is None or not pieces:
                verdicts.append(Verdict(name, node.op.name, compared=False, problem=None, output=is_output))
                continue
            found = _laid(there, pieces, wanted[name])
            problem = assertions.difference(found, wanted[name])
            verdicts.append(
                Verdict.of(name, node.op.name, found, wanted[name], problem=problem, halves=halves, output=is_output)
            )
    return verdicts


def _tell_squares(request: Request, pair: Pair, verdicts: Sequence[Verdict], flags: Mapping[str, Any]) -> None:
    """Name the tensors in which positions of the signal meet each other: what a pulse has of them is no part of them.

    It is some of their rows, skewed: a window of columns around each pulse.
    """
    apart = {one.name for one in verdicts if not one.compared}
    names = [name for outlet, name in _names(pair.whole).items() if name in apart and _is_square(pair, outlet)]
    if names and not (flags["as_json"] or flags["quiet"]):
        listed = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if (more := len(names) - MOST_NAMED) > 0 else "")
        request.console.line(f"not compared, as a pulse has a window of their columns: {listed}")


def _is_square(pair: Pair, outlet: OutletId) -> bool:
    """Whether a tensor has two axes of time, as the scores of attention have."""
    return sum(pair.streams.symbol in symbols_of(size) for size in pair.whole.outlet_fact(outlet).shape) > 1


def _laid(there: Streamed, pieces: Sequence[Array], wanted: Array) -> Array:
    """The tensor over the whole signal, of what came in each turn."""
    if there.end is None:
        return pieces[-1]
    axis, delay = there.end.axis, there.end.delay
    return part(np.concatenate(pieces, axis), axis, delay, delay + wanted.shape[axis])
