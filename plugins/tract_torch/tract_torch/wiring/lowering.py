"""What there is to choose when a program becomes a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tract_torch.naming import VariableNamingScheme

StatesOption: TypeAlias = Literal["refuse", "inputs", "inside"]


@dataclass(frozen=True)
class Lowering:
    """How a program becomes a model.

    ``attention_in_f32``: whether attention is computed in 32 bits in a model of 16. ``linear_in_f32``: whether linear
    layers have to compute in 32 bits then; else whoever runs them decides. (Normalisations always are computed in
    32.) ``keep_attention``: whether attention stays one operator, as some engines know it. ``keep_parameters``: whether
    parameters, and buffers of floats, are constants of the names that they have in the module, with nothing folded into
    them, as batch normalisation is into convolutions, so others can take their place. ``naming``: how tensors between
    inputs and outputs are called.
    ``states``: what becomes of buffers that the module changes, see `tract_torch.wiring.states`.
    """

    attention_in_f32: bool = True
    linear_in_f32: bool = False
    keep_attention: bool = False
    keep_parameters: bool = False
    naming: VariableNamingScheme = VariableNamingScheme.NATURAL_VERBOSE
    states: StatesOption = "refuse"
