"""A plugin's subcommand may be a group of several, which take no MODEL: ``tract pets feed cat --double``."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest
from click.testing import Result

from tract_core.cli.completion import starting
from tract_core.testing.toys import toy_registry

Call = Callable[..., Result]


@click.group(invoke_without_command=True, short_help="About pets.")
@click.pass_context
def pets(ctx: click.Context) -> None:
    """Keep pets."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@pets.command(short_help="Give it something.")
@click.argument("name", shell_complete=lambda _, __, incomplete: starting(incomplete, ["cat", "cow"]))
@click.option("-d", "--double", is_flag=True, help="Two portions.")
@click.option("--set", "what", default="hay", help="What it gets.")
@click.pass_obj
def feed(request: object, name: str, double: bool, what: str) -> None:
    """Feed NAME."""
    click.echo(f"{name} gets {what}{' twice' * double}; {getattr(request, 'machine_friendly', None)}")


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = toy_registry("toys", commands={"pets": f"{__name__}:pets"})
    registry.load = lambda hook, name, *rest: (
        pets if name == "pets" else type(registry).load(registry, hook, name, *rest)
    )
    monkeypatch.setattr("tract_core.plugins.default._default", [registry])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pets feed cat", "cat gets hay; False"),
        ("pets feed --double cat", "cat gets hay twice; False"),
        ("pets feed cat -d --set=fish", "cat gets fish twice; False"),  # --set is a global flag too
        ("pets feed --machine-friendly cat --set fish", "cat gets fish; True"),
        ("--machine-friendly pets feed cat", "cat gets hay; True"),
        ("pets --machine-friendly feed cat", "cat gets hay; True"),
        ("pets feed -- --double", "--double gets hay; False"),
    ],
)
def test_flags_are_those_of_the_inner_subcommand(tract: Call, line: str, said: str) -> None:
    result = tract(*line.split())
    assert (result.exit_code, result.output) == (0, f"{said}\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pets fed cat", "no subcommand 'fed', did you mean 'feed'?"),
        ("pets groom cat", "no subcommand 'groom'; there are feed"),
        ("pets feed cat --duoble", "there is no flag --duoble, did you mean the flag --double?"),
        ("pets feed cat --qqq", "'tract pets feed --help' those of a subcommand"),
        ("pets --double feed cat", "there is no flag --double"),
        ("pets feed cat --steps", "--steps is a flag of 'run', not of 'pets feed'"),
        ("pets feed cat -r reference", "-r is about MODEL, and pets feed works on none"),
        ("plugins -r reference", "-r is about MODEL, and plugins works on none"),
        ("pets feed", "Missing argument 'NAME'"),
        ("pets feed cat --set", "--set wants a value"),
        ("help pets groom", "no subcommand 'groom'; there are feed"),
        ("help pets feed cat", "no subcommand 'cat'"),
    ],
)
def test_what_is_misspelt(tract: Call, line: str, message: str) -> None:
    result = tract(*line.split())
    assert result.exit_code == 2
    assert message in result.output


def test_help(tract: Call) -> None:
    assert "pets" in tract("--help").output.partition("Without MODEL")[2].partition("Loading")[0]
    whole = tract("pets", "--help").output
    assert tract("pets").output == tract("--help", "pets").output == tract("help", "pets").output == whole
    assert "Usage: tract pets" in whole.replace("main pets", "tract pets")
    assert "Give it something." in whole
    inner = tract("pets", "feed", "--help").output
    assert tract("help", "pets", "feed").output == inner
    assert "pets feed [OPTIONS] NAME" in inner
    assert "Two portions." in inner
