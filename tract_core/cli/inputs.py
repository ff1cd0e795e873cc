"""The values of a model's inputs, as the flags ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.cli.readings import array_file
from tract_core.cli.values import make_inputs, read_array, read_bundle
from tract_core.errors import InputError
from tract_core.model.typed import TypedModel

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]


def inputs_for(request: Request, model: TypedModel, flags: dict[str, Any]) -> list[Array]:
    """One array per input, in order. Raises InputError when one has no value, and for a bundle without inputs."""
    names = [model.outlet_name(outlet) for outlet in model.inputs]
    bundle = read_bundle(flags["bundle"]) if flags["bundle"] else {}
    if flags["bundle"] and names and not set(names) & bundle.keys():
        raise InputError(
            f"no array in it names an input; it has {', '.join(bundle) or 'nothing'}",
            where=flags["bundle"],
            hint=f"inputs: {', '.join(names)}",
        )
    return make_inputs(
        names,
        [model.outlet_fact(outlet) for outlet in model.inputs],
        bundle={**bundle, **_from_files(request, names)},
        random=flags["random"],
        ranges=flags["ranges"],
        bindings=flags["bindings"],
    )


def _from_files(request: Request, names: list[str]) -> dict[str, Array]:
    """The values that ``--input NAME=FILE.npy`` gives, by name. Raises InputError for names that no input has."""
    files = dict(filter(None, map(array_file, request.inputs)))
    files = {name: path for name, path in files.items() if name not in request.constantize}
    for name in files.keys() - {*names}:
        raise InputError(f"no input {name!r}; there are: {', '.join(names) or 'none'}", where="--input")
    return {name: read_array(path) for name, path in files.items()}
