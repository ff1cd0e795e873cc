"""The frame of the command: ``tract [global flags] MODEL [global flags] SUBCOMMAND [flags]``.

Global flags may stand before or after MODEL. Without a subcommand, ``dump`` runs, and takes the flags that are not
global. A subcommand that is no `ModelCommand` (``tract plugins``) stands where MODEL would.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from tract_core.cli.command import GLOBAL_USAGE, ModelCommand, write_flags
from tract_core.cli.options import LOADING, MANNERS, global_options
from tract_core.errors import CorruptModel, MissingFile, ModelError, TractError, VersionError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tract_core.cli.formats import FrontendFlag
    from tract_core.cli.request import Request

DEFAULT: Final = "dump"
INTERRUPTED: Final = 130
"""Exit status after Ctrl-C: 128 and the number of the signal, as shells have it."""

EPILOG: Final = """\
Examples:

\b
  tract model.onnx                          print the decluttered graph
  tract model.onnx --pass load dump         print it as it is in the file
  tract model.onnx -i 1,3,224,224,f32 bench time it on random inputs
  tract model.onnx run -R --steps           run it, print every tensor
  tract model.onnx doctor                   what keeps it from running, and what to do
  tract plugins                             what is installed, and how it is doing

\b
Exit status: 0 when all that was asked and asserted held, 1 for errors and assertions that failed,
2 for a command line that is wrong, 124 when --timeout is over.
"""


class Line(NamedTuple):
    """A command line, split: the global flags, MODEL, the subcommand with its own arguments."""

    flags: list[str]
    model: str | None
    command: list[str]


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

    @cached_property
    def frontend_flags(self) -> list[FrontendFlag]:
        """The flags that the installed formats bring."""
        from tract_core.cli.formats import frontend_flags

        return frontend_flags()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The global flags."""
        own = super().get_params(ctx)
        first = sum(getattr(option, "group", None) == LOADING for option in own)
        return [*own[:first], *self.frontend_flags, *own[first:]]

    # -- help ------------------------------------------------------------------------------------------------------

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

        from tract_core.cli.completion import files

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
        return items if model else [*items, *files(incomplete)]

    # -- parsing ---------------------------------------------------------------------------------------------------

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the line at the subcommand; the part before it holds MODEL and the global flags."""
        line = self._split(ctx, list(args))
        asked = {"-h", "--help", "--version"} & set(line.flags)
        if not ctx.resilient_parsing and line.model is None and not line.command and not asked:
            if line.flags:
                raise click.UsageError("no MODEL and no subcommand is named", ctx)
            click.echo(ctx.get_help())
            ctx.exit(0)
        remaining = super().parse_args(ctx, [*line.flags, *line.command])
        ctx.params["model"] = line.model
        if ctx.params.get("machine_friendly") or os.environ.get("NO_COLOR"):
            ctx.color = False
        return remaining

    def _split(self, ctx: click.Context, args: list[str]) -> Line:
        flags: list[str] = []
        model: str | None = None
        while args:
            token = args.pop(0)
            if token.startswith("-") and len(token) > 1:
                taken = self._global_flag(ctx, token, args)
                if taken is None:
                    return self._default(ctx, Line(flags, model, [token, *args]))
                flags += taken
            elif model is None and self._is_model(ctx, token, args):
                model = token
            else:
                return Line(flags, model, [self._known(ctx, token), *args])
        if model is None or ctx.resilient_parsing:
            return Line(flags, model, [])
        self._check_spelling(ctx, model)
        return Line(flags, model, [DEFAULT])

    def _default(self, ctx: click.Context, line: Line) -> Line:
        """The line of the default subcommand, which was not named: global flags may stand among its own."""
        if line.model is None and not ctx.resilient_parsing:
            raise click.UsageError(f"no MODEL is named before {line.command[0]}", ctx)
        first, later = line.command[0], line.command[1:]
        default = self.get_command(ctx, DEFAULT)
        own = {name for option in default.params for name in option.opts} if default is not None else set[str]()
        named = next((token for token in later if isinstance(self.get_command(ctx, token), ModelCommand)), None)
        if named is not None and first.partition("=")[0] not in own and not ctx.resilient_parsing:
            raise click.UsageError(
                f"{first} is no global flag: flags of a subcommand stand after it, as in 'tract MODEL {named} {first}'",
                ctx,
            )
        flags, command, rest = list(line.flags), [DEFAULT], [first, *later]
        while rest:
            token = rest.pop(0)
            taken = self._global_flag(ctx, token, rest) if token.startswith("-") and len(token) > 1 else None
            if taken is None:
                command.append(token)
            else:
                flags += taken
        return Line(flags, line.model, command)

    def _global_flag(self, ctx: click.Context, token: str, later: list[str]) -> list[str] | None:
        """The flag and its value, taken from ``later``, when it is a global one."""
        name = token.partition("=")[0] if token.startswith("--") else token[:2]
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and name in (*option.opts, *option.secondary_opts):
                attached = "=" in token if token.startswith("--") else len(token) > 2
                if option.is_flag or option.count or attached:
                    return [token]
                if later:
                    return [token, later.pop(0)]
                if ctx.resilient_parsing:
                    return [token]
                raise click.UsageError(f"{name} wants a value: {name} {option.make_metavar(ctx)}", ctx)
        return None

    def _is_model(self, ctx: click.Context, token: str, later: list[str]) -> bool:
        command = self.get_command(ctx, token)
        if isinstance(command, ModelCommand) and not {"-h", "--help"} & set(later) and not ctx.resilient_parsing:
            raise click.UsageError(f"{token} works on a model: write 'tract MODEL {token}'", ctx)
        return command is None

    def _known(self, ctx: click.Context, token: str) -> str:
        names = self.list_commands(ctx)
        if token not in names and not ctx.resilient_parsing:
            near = get_close_matches(token, names, n=1)
            raise click.UsageError(
                f"no subcommand {token!r}"
                + (f", did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"),
                ctx,
            )
        return token

    def _check_spelling(self, ctx: click.Context, model: str) -> None:
        """Refuse a word that was meant as a subcommand and taken for MODEL."""
        near = get_close_matches(model, self.list_commands(ctx), n=1)
        if near and not Path(model).exists():
            raise click.UsageError(f"no file and no subcommand is named {model!r}, did you mean {near[0]!r}?", ctx)

    # -- running ---------------------------------------------------------------------------------------------------

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse and run a command line. Whatever is printed steers no terminal."""
        from tract_core.cli.guard import guarded_output

        with guarded_output():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand. An error is one message on standard error and exit status 1."""
        request: Request | None = None
        try:
            request = self._request(ctx)
            ctx.obj = request
            with request.time_limit():
                result = super().invoke(ctx)
                sys.stdout.flush()  # what cannot be written is an error too
                return result
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if request is None or request.debug:
                traceback.print_exception(error, file=sys.stderr)
            click.echo(click.style("Error: ", fg="red", bold=True) + _message(error), err=True, color=ctx.color)
            if _has_more(error) and ctx.invoked_subcommand != "doctor":
                model = shlex.quote(ctx.params["model"] or "MODEL")
                click.echo(f"  'tract {model} doctor' lists everything that stands in the way", err=True)
            ctx.exit(1)

    def _request(self, ctx: click.Context) -> Request:
        from tract_core.cli.request import Request

        flags = {flag.name: flag for flag in self.frontend_flags}
        chosen = tuple(flag for name, flag in flags.items() if ctx.params.get(name or ""))
        own = {name: value for name, value in ctx.params.items() if name not in flags}
        return Request(**own, frontend_flags=chosen)


def _has_more(error: Exception) -> bool:
    """Whether other things may be wrong with the same model, which the error does not say."""
    nothing_else = MissingFile, CorruptModel, VersionError
    return isinstance(error, ModelError) and not isinstance(error, nothing_else) and error.hint != ModelError.advice


def _message(error: Exception) -> str:
    if isinstance(error, TractError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory{': ' if str(error) else ''}{error}"
    if isinstance(error, OSError):
        return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"
    return f"{type(error).__name__}: {error}\n  hint: this is a defect of the program; --debug shows where it happened"


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
