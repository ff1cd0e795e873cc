"""The values of a model's inputs, as the run flags ask for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.cli.values import make_inputs, read_bundle
from tract_core.model.typed import TypedModel

Array = np.ndarray[Any, Any]


def inputs_for(model: TypedModel, flags: dict[str, Any]) -> list[Array]:
    """One array per input, in order. Raises InputError when one has no value."""
    return make_inputs(
        [model.outlet_name(outlet) for outlet in model.inputs],
        [model.outlet_fact(outlet) for outlet in model.inputs],
        bundle=read_bundle(flags["bundle"]) if flags["bundle"] else {},
        random=flags["random"],
        ranges=flags["ranges"],
        bindings=flags["bindings"],
    )
