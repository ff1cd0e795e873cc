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
    kind = Carrying if config.has_state else Stateful
    return kind(name, version, recipe, config, told, settings=settings)
