"""The values of a model's inputs, as the flags ask for them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tract_core.cli.readings import IMAGES, SOUNDS, array_file
from tract_core.cli.signals import PULSES, first_turn, turns_late, whole_facts, with_length, without_rest
from tract_core.cli.values import holds_floats, make_inputs, read_array, read_bundle
from tract_core.data import DatumType
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streams
from tract_core.texts import printable

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]


def inputs_for(request: Request, model: TypedModel, flags: dict[str, Any]) -> list[Array]:
    """What one turn takes: one array per input, in order; of a signal that comes in pulses, the first of them."""
    return first_turn(model, whole_inputs_for(request, model, flags))


def whole_inputs_for(
    request: Request, model: TypedModel, flags: dict[str, Any], turns: Fraction | None = None
) -> list[Array]:
    """One array per input, in order; where a model takes its signal in pulses, all of the signal.

    ``turns``: how many pulses a random signal takes. Raises InputError when an input has no value, and for a bundle
    without inputs.
    """
    streams = Streams.of(model)
    facts, bindings = [model.outlet_fact(outlet) for outlet in model.inputs], flags["bindings"]
    names = [model.outlet_name(outlet) for outlet in model.inputs]
    bundle = read_bundle(flags["bundle"]) if flags["bundle"] else {}
    if flags["bundle"] and names and not set(names) & bundle.keys():
        raise InputError(
            f"no array in it names an input; it has {', '.join(bundle) or 'nothing'}",
            where=flags["bundle"],
            hint=f"inputs: {', '.join(names)}",
        )
    given = {**bundle, **_from_files(request, dict(zip(names, facts, strict=True)))}
    if flags.get("float_casts"):
        kinds = {name: fact.datum_type.storage for name, fact in zip(names, facts, strict=True)}
        given = {name: _as_float(array, kinds.get(name)) for name, array in given.items()}
    if streams is not None:
        facts = whole_facts(model, streams)
        if not any(name in given and end is not None for name, end in zip(names, streams.inputs, strict=True)):
            bindings = with_length(model, streams, bindings, turns or turns_late(model, streams) + PULSES)
    arrays = make_inputs(
        names,
        facts,
        bundle=given,
        random=flags["random"],
        ranges=flags["ranges"],
        bindings=bindings,
        seed=flags["seed"],
    )
    return without_rest(model, streams, arrays) if streams is not None and flags["drop_partial"] else arrays


def _as_float(array: Array, kind: DatumType | None) -> Array:
    """An array of floats in the type of an input of floats; any other one as it is."""
    return array.astype(kind.numpy) if holds_floats(array) and kind is not None and kind.is_float() else array


def _from_files(request: Request, facts: dict[str, TypedFact]) -> dict[str, Array]:
    """The values that ``--input NAME=FILE`` gives, by name. Raises InputError for names that no input has."""
    files = dict(filter(None, map(array_file, request.inputs)))
    files = {name: path for name, path in files.items() if name not in request.constantize}
    for name in files.keys() - {*facts}:
        raise InputError(f"no input {name!r}; there are: {', '.join(facts) or 'none'}", where="--input")
    return {name: _read(request, path, facts[name], name) for name, path in files.items()}


def _read(request: Request, path: Path, fact: TypedFact, name: str) -> Array:
    """The value in a file. What was done to an image or a sound is told."""
    ending = path.suffix.lower()
    if ending not in (*IMAGES, *SOUNDS):
        return read_array(path)
    from tract_core.cli.media import Scaling, read_image, read_sound

    if ending in SOUNDS:
        array, told = read_sound(path, fact)
    else:
        scaling = Scaling(request.image_mean or (0.0,), request.image_std or (1.0,))
        array, told = read_image(path, fact, scaling)
    click.echo(f"input {printable(name)}: {printable(path.name)}, {told}", err=True)
    return array
