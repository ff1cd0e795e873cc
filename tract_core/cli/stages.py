"""The flags about stages: how far to take a model, and what plugins do on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from tract_core.cli.brought import BroughtFlag
from tract_core.cli.command import Flag
from tract_core.cli.formats import as_flag, attributes_of
from tract_core.plugins import default_registry
from tract_core.plugins.descriptor import Stage
from tract_core.plugins.stages import in_order, what_is_wrong

GROUP = "How far to take it"


class StageFlag(BroughtFlag):
    """The flag of a stage that a plugin adds, as ``--pulse``."""

    def __init__(self, stage: Stage) -> None:
        name = f"stage_{stage.name.replace('-', '_')}"
        names, attributes = [as_flag(stage.name), name], attributes_of(stage.option)
        super().__init__(names, hook="tract_stages", offer=stage.name, group=GROUP, **attributes)
        self.stage = stage


class NamesStage(Flag):
    """A flag whose value is the name of a stage; its help ends with their names."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, callback=_stage, shell_complete=_starting, metavar="STAGE", **attributes)
        self._words = self.help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The flag, and what it is for."""
        self.help = f"{self._words}: {', '.join(stages())}."
        return super().get_help_record(ctx)


def _stage(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The name as it is. Raises BadParameter for one that is no stage."""
    if value is not None and value not in stages():
        raise click.BadParameter(f"{value!r} is not one of {', '.join(map(repr, stages()))}.", ctx, param)
    return value


def _starting(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in stages() if name.startswith(incomplete)]


def stages() -> list[str]:
    """The names of all stages, in order."""
    return in_order(default_registry().stages())


def check_places(staged: Iterable[str]) -> None:
    """Refuse stages that are asked for and cannot have their place. Raises PluginError."""
    added = default_registry().stages()
    for name in staged:
        error = what_is_wrong(added[name], added)
        if error is not None:
            raise error.at(f"plugin of {default_registry().owner('tract_stages', name)}")


def stage_flags() -> list[StageFlag]:
    """The flags of the stages that plugins add."""
    return [StageFlag(stage) for stage in default_registry().stages().values()]
