"""The frame of the command: ``tract MODEL SUBCOMMAND``, with flags as `tract_core.cli.line` says.

A subcommand that is no `ModelCommand` (``tract plugins``) stands where MODEL would.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.command import GLOBAL_USAGE, ModelCommand, write_flags
from tract_core.cli.line import DEFAULT, HELP, Splitter, line_with
from tract_core.cli.options import LOADING, MANNERS, global_options
from tract_core.errors import CorruptModel, MissingFile, ModelError, TractError, Unwritable, VersionError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tract_core.cli.formats import FormatFlag
    from tract_core.cli.request import Request
    from tract_core.cli.stages import StageFlag

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C: 128 and the number of the signal, as shells have it."""

COMPLETING: Final = "_TRACT_COMPLETE"
"""The variable with which a shell asks what to offer."""

EPILOG: Final = """\
Examples:

\b
  tract model.onnx                     print the decluttered graph
  tract model.onnx --pass load         print it as it is in the file
  tract model.onnx -i 1,3,S,f32 bench  time it on random inputs
  tract model.onnx run -R --steps      run it, print every tensor
  tract model.onnx doctor              what is wrong, what to do about it
  tract cook model.onnx                simplify it, for loading in no time
  tract plugins                        what is installed, how it is doing

Exit status: 0 when all that was asked and asserted held, 1 for errors and assertions that failed,
2 for a command line that is wrong, 124 when --timeout is over.
"""


class Frame(click.Group):
    """Finds MODEL, the global flags around it, and the subcommand with its own flags."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands of all installed plugins, the core's first."""
        from tract_core.plugins import default_registry

        return list(default_registry().commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A subcommand, imported when it is asked for."""
        from tract_core.plugins import default_registry

        registry = default_registry()
        reference = registry.commands().get(cmd_name)
        if reference is None:
            return None
        try:
            return registry.load("tract_commands", cmd_name)
        except TractError as error:
            return _unavailable(cmd_name, error)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The global flags."""
        own = super().get_params(ctx)
        of_loaders, of_writers, of_stages = _brought(own)
        first = sum(getattr(option, "group", None) == LOADING for option in own)
        return [*own[:first], *of_loaders, *own[first:], *of_writers, *of_stages]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The shape of a command line."""
        formatter.write_usage(ctx.command_path, f"{GLOBAL_USAGE} [SUBCOMMAND] [FLAGS]")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The subcommands, those that take no MODEL apart, then the flags in groups."""
        groups: dict[str, list[tuple[str, str]]] = {"Subcommands": [], "Without MODEL": []}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                title = "Subcommands" if isinstance(command, ModelCommand) else "Without MODEL"
                groups[title].append((name, command.get_short_help_str(limit=80)))
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)
        write_flags(self, ctx, formatter, MANNERS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Before MODEL: files, and the subcommands that need none; after it: the others; flags wherever one begins."""
        from click.shell_completion import CompletionItem

        from tract_core.cli.completion import models

        model = ctx.params.get("model")
        if incomplete.startswith("-"):
            default = self.get_command(ctx, DEFAULT)
            flags = click.Command.shell_complete(self, ctx, incomplete)
            more = default.shell_complete(ctx, incomplete) if model and default is not None else []
            known = {item.value for item in flags}
            return [*flags, *(item for item in more if item.value not in known)]
        items = [
            CompletionItem(name, help=command.get_short_help_str())
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
            and (command := self.get_command(ctx, name)) is not None
            and isinstance(command, ModelCommand) == bool(model)
        ]
        return items if model else [*items, *models(incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the line at the subcommand; the part before it holds MODEL and the global flags."""
        line = Splitter(self, ctx).split(args)
        asked = {*HELP, "--version"} & set(line.flags)
        if not ctx.resilient_parsing and line.model is None and not line.command and not asked:
            if line.flags:
                raise click.UsageError("no MODEL and no subcommand is named", ctx)
            click.echo(ctx.get_help())
            ctx.exit(0)
        remaining = super().parse_args(ctx, [*line.flags, *line.command])
        ctx.params["model"] = line.model
        ctx.params["given"] = tuple(line.flags)
        if ctx.params.get("machine_friendly") or os.environ.get("NO_COLOR"):
            ctx.color = False
        return remaining

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse and run a command line. Whatever is printed steers no terminal."""
        from tract_core.cli.guard import guarded_output

        if os.environ.get(COMPLETING):
            from tract_core.cli.shells import register

            register()
        with guarded_output():
            return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse a command line. Ctrl-C while that lasts is what it is later."""
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:
            _say_interrupted()
            raise click.exceptions.Exit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand. An error is one message on standard error and exit status 1."""
        request: Request | None = None
        try:
            request = self._request(ctx)
            ctx.obj = request
            with request.time_limit(), request.checking():
                result = super().invoke(ctx)
                sys.stdout.flush()  # what cannot be written is an error too
                return result
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            _say_interrupted()
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if request is None or request.debug:
                traceback.print_exception(error, file=sys.stderr)
            has_more = _has_more(error) and ctx.params["model"] and ctx.invoked_subcommand != "doctor"
            message = click.style("Error: ", fg="red", bold=True) + _message(error, request)
            click.echo(message, err=True, color=ctx.color)
            if has_more:
                doctor = line_with(ctx.params["given"], ctx.params["model"], "doctor")
                click.echo(f"  '{doctor}' lists everything that stands in the way", err=True)
            ctx.exit(1)

    def _request(self, ctx: click.Context) -> Request:
        from tract_core.cli.formats import given_among
        from tract_core.cli.request import Request

        of_loaders, of_writers, of_stages = _brought(super().get_params(ctx))
        brought = {flag.name for flag in (*of_loaders, *of_writers, *of_stages)}
        own = {name: value for name, value in ctx.params.items() if name not in brought}
        of_format, settings = (given_among(flags, ctx.params) for flags in (of_loaders, of_writers))
        staged = {flag.stage.name: value for flag, value in given_among(of_stages, ctx.params).items()}
        return Request(**own, of_format=of_format, of_writer=settings, staged=staged)


def _brought(own: Sequence[click.Parameter]) -> tuple[list[FormatFlag], list[FormatFlag], list[StageFlag]]:
    """The global flags that plugins bring, beside those of the core: of loaders, of writers, and of stages."""
    from tract_core.cli.brought import with_free_names
    from tract_core.cli.formats import loader_flags, setting_flags
    from tract_core.cli.stages import stage_flags

    of_loaders = with_free_names(loader_flags(), own)
    of_writers = with_free_names(setting_flags(), [*own, *of_loaders])
    return of_loaders, of_writers, with_free_names(stage_flags(), [*own, *of_loaders, *of_writers])


def _has_more(error: Exception) -> bool:
    """Whether other things may be wrong with the same model, which the error does not say."""
    nothing_else = MissingFile, CorruptModel, VersionError, Unwritable
    return isinstance(error, ModelError) and not isinstance(error, nothing_else) and error.hint != ModelError.advice


def _message(error: Exception, request: Request | None) -> str:
    if isinstance(error, TractError):
        if error.hint and request is not None:
            from tract_core.cli.wording import on_the_line

            error.hint = on_the_line(error.hint, request)
        return str(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory{': ' if str(error) else ''}{error}"
    if isinstance(error, OSError):
        return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"
    return f"{type(error).__name__}: {error}\n  hint: this is a defect of the program; --debug shows where it happened"


def _say_interrupted() -> None:
    click.echo("\ninterrupted", err=True)


def _unavailable(name: str, error: TractError) -> click.Command:
    """Stands for a plugin's subcommand that cannot be imported: says why when it is called."""

    def fail() -> None:
        raise error

    return click.Command(name, callback=fail, help=f"(cannot be loaded: {error.problem})")


def _nothing(**_: Any) -> None:
    """The frame itself does nothing; `Frame.invoke` made the request already."""


app = Frame(
    "tract",
    params=global_options(),
    epilog=EPILOG,
    help="Load, simplify, inspect and run neural network models.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    callback=_nothing,
    no_args_is_help=False,
    invoke_without_command=False,
)
