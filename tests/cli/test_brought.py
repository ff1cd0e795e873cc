"""The flags that plugins bring: one whose name is taken is refused, told, and disturbs nobody."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tract_core.cli.brought import with_free_names
from tract_core.cli.frame import app
from tract_core.cli.stages import stage_flags
from tract_core.plugins import PluginWarning, Registry
from tract_core.plugins.descriptor import Format, Option, Stage
from tract_core.testing.toys import toy_registry

ON = Option("For a test.")
STAGES = [
    Stage("runtime", "type", "set_symbols", Option("For a test.", str), "values"),  # a global flag of the core
    Stage("help", "type", "set_symbols", ON),  # one that click adds
    Stage("mine-flag", "type", "set_symbols", ON),  # one of a format of the same plugin
    Stage("json", "type", "set_symbols", ON),  # a flag of subcommands, behind which it is theirs: no clash
    Stage("fine", "type", "set_symbols", ON),
]
FORMATS = [
    Format("mine", [".mine"], "toys:Loader", flags={"flag": "For a test.", "other": "For a test."}),
    Format("edge", [".edge"], "toys:Loader", flags={"left_context": "For a test."}),
    Format("left", [".left"], "toys:Loader", flags={"context": "For a test."}),  # the core's flag has a longer name
]
TAKEN = {
    "flag --runtime": "both tract-core and toys have a flag --runtime; the first is used",
    "flag --help": "both tract-core and toys have a flag --help; the first is used",
    "flag --edge-left-context": "both tract-core and toys have a flag --edge-left-context; the first is used",
    "flag --mine-flag": "toys has twice a flag --mine-flag; the first is used",
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    found = toy_registry("toys", stages=STAGES, formats=FORMATS)
    monkeypatch.setattr("tract_core.plugins.default._default", [found])
    return found


@pytest.mark.filterwarnings("ignore::tract_core.plugins.registry.PluginWarning")
def test_the_core_s_flags_stay_what_they_are(registry: Registry, model: Path) -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    for name in ("--fine", "--json", "--left-context", "--mine-flag", "--mine-other"):
        assert shown.count(f" {name} ") == 1
    assert shown.count(" --runtime ") == shown.count(" --edge-left-context ") == 1
    ctx = click.Context(app)
    names = [name for option in app.get_params(ctx) for name in option.opts]
    assert len(names) == len(set(names))
    assert len({option.name for option in app.get_params(ctx)}) == len(app.get_params(ctx))


def test_each_is_reported_once_and_named_by_the_check(registry: Registry) -> None:
    ctx = click.Context(app)
    with pytest.warns(PluginWarning) as told:
        assert [one.opts for one in app.get_params(ctx)] == [one.opts for one in app.get_params(ctx)]
    assert len(told) == len(TAKEN)
    found = CliRunner().invoke(app, ["plugins", "--check", "--json"])
    assert found.exit_code == 1
    (toys,) = [one for one in json.loads(found.stdout) if one["name"] == "toys"]
    flags = {one["doing"]: one["problem"] for one in toys["failures"] if one["doing"].startswith("flag ")}
    assert flags == TAKEN
    assert {one["fix"] for one in toys["failures"]} >= {f"rename {name!r} of toys" for name in ("runtime", "edge")}


def test_flags_of_several_plugins(registry: Registry) -> None:
    (one,) = [flag for flag in stage_flags() if flag.stage.name == "fine"]
    assert with_free_names([one], []) == [one]
    with pytest.warns(PluginWarning, match="toys has twice a flag --fine; the first is used"):
        assert with_free_names([one, one], []) == [one]
