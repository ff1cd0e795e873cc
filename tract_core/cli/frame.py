"""The frame of the command: ``tract [global flags] MODEL [global flags] SUBCOMMAND [flags]``.

Global flags may stand before or after MODEL. Without a subcommand, ``dump`` runs, and takes the flags that are not
global. A subcommand that is no `ModelCommand` (``tract plugins``) stands where MODEL would.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.options import global_options
from tract_core.errors import TractError

if TYPE_CHECKING:
    from tract_core.cli.request import Request

DEFAULT: Final = "dump"

EPILOG: Final = """\
Examples:

\b
  tract model.onnx                          print the decluttered graph
  tract model.onnx --pass load dump         print it as it is in the file
  tract model.onnx -i 1,3,224,224,f32 bench time it on random inputs
  tract model.onnx run -R --steps           run it, print every tensor
  tract plugins                             what is installed, and how it is doing
"""


class ModelCommand(click.Command):
    """A subcommand that works on MODEL; its function gets the `Request` through ``click.pass_obj``."""


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

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The shape of a command line."""
        formatter.write_usage(ctx.command_path, "[GLOBAL FLAGS] MODEL [SUBCOMMAND] [FLAGS]")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the line at the subcommand; the part before it holds MODEL and the global flags."""
        head, model, rest = self._split(ctx, list(args))
        if model is None and not rest and "--help" not in head and "-h" not in head and "--version" not in head:
            click.echo(ctx.get_help())
            ctx.exit(0 if not head else 2)
        remaining = super().parse_args(ctx, [*head, *rest])
        ctx.params["model"] = model
        return remaining

    def _split(self, ctx: click.Context, args: list[str]) -> tuple[list[str], str | None, list[str]]:
        head: list[str] = []
        model: str | None = None
        tokens = iter(args)
        for token in tokens:
            if token.startswith("-") and len(token) > 1:
                taken = self._global_flag(ctx, token, tokens)
                if taken is None:  # not a global flag: the default subcommand's
                    return head, model, [DEFAULT, token, *tokens]
                head += taken
            elif model is None and self._is_model(ctx, token):
                model = token
            else:
                return head, model, [self._known(ctx, token), *tokens]
        return head, model, [DEFAULT] if model is not None else []

    def _global_flag(self, ctx: click.Context, token: str, tokens: Iterator[str]) -> list[str] | None:
        """The flag and its value, when it is a global one."""
        name = token.partition("=")[0] if token.startswith("--") else token[:2]
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and name in (*option.opts, *option.secondary_opts):
                attached = "=" in token if token.startswith("--") else len(token) > 2
                if option.is_flag or option.count or attached:
                    return [token]
                value = next(tokens, None)
                return [token] if value is None else [token, value]
        return None

    def _is_model(self, ctx: click.Context, token: str) -> bool:
        command = self.get_command(ctx, token)
        if isinstance(command, ModelCommand):
            raise click.UsageError(f"{token} works on a model: write 'tract MODEL {token}'", ctx)
        return command is None

    def _known(self, ctx: click.Context, token: str) -> str:
        names = self.list_commands(ctx)
        if token not in names:
            near = get_close_matches(token, names, n=1)
            raise click.UsageError(
                f"no subcommand {token!r}"
                + (f", did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"),
                ctx,
            )
        return token

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand. An error is one message on standard error and exit status 1."""
        request: Request | None = None
        try:
            request = _request(ctx)
            ctx.obj = request
            with request.time_limit():
                return super().invoke(ctx)
        except BrokenPipeError:
            sys.stderr.close()  # the reader went away, as `head` does; nothing is wrong
            ctx.exit(0)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if request is None or request.debug:
                traceback.print_exception(error, file=sys.stderr)
            click.secho("error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(_message(error), err=True)
            ctx.exit(1)


def _message(error: Exception) -> str:
    if isinstance(error, TractError):
        return str(error)
    return f"{type(error).__name__}: {error}\n  hint: this is a defect of the program; --debug shows where it happened"


def _request(ctx: click.Context) -> Request:
    from tract_core.cli.request import Request

    return Request(**ctx.params)


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
