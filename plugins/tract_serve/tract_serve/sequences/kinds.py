"""How a model keeps its state."""

from __future__ import annotations

from tract_core.errors import CorruptModel
from tract_serve.config import ModelConfig
from tract_serve.models.recipe import ServingRecipe
from tract_serve.models.trying import Tried
from tract_serve.sequences.carrying import Carrying
from tract_serve.sequences.sequenced import Sequenced
from tract_serve.sequences.stateful import Stateful
from tract_serve.settings import Settings


def sequenced(
    name: str, version: str, recipe: ServingRecipe, config: ModelConfig, told: Tried, *, settings: Settings
) -> Sequenced:
    """A model with state, as its configuration says, or as its operators keep it. Raises ModelError."""
    if any(one.HasField("reshape") for one in [*config.told.input, *config.told.output]):
        raise CorruptModel("a model with state has no 'reshape'", where=f"model {name!r}", hint="leave it out")
    if told.keeps and config.told.sequence_batching.control_input and not config.told.sequence_batching.state:
        problem = "sequence_batching: there is no control_input for a model whose operators keep the state"
        raise CorruptModel(problem, where=f"model {name!r}", hint="leave it out, or name the state")
    kind = Carrying if config.has_sequences else Stateful
    return kind(name, version, recipe, config, told, settings=settings)
