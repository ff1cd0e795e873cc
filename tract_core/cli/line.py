"""Which words of a command line are global flags, MODEL, the subcommand, and flags of the subcommand.

Global flags may stand anywhere, and the subcommand before MODEL or behind it. Where a subcommand has a flag of the same
name as a global one, behind the subcommand it is that one.
Without a subcommand, ``dump`` takes the flags that are not global. Whatever is no flag and no subcommand is told here,
with the nearest name, as only here it is known what was meant.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from tract_core.cli.command import Flag, ModelCommand, a_file_too_much
from tract_core.cli.options import MANNERS
from tract_core.errors import meant
from tract_core.plugins.missing import RESERVED, brings_flag, how_to_get

DEFAULT: Final = "dump"
HELP: Final = frozenset({"-h", "--help"})


class Line(NamedTuple):
    """A command line, split: the global flags, MODEL, the subcommand with its own arguments."""

    flags: list[str]
    model: str | None
    command: list[str]


def line_with(flags: Iterable[str], model: str | None, *command: str) -> str:
    """A line to paste: the global flags that were given, repeated behind MODEL."""
    return shlex.join(["tract", model or "MODEL", *flags, *command])


class Splitter:
    """Splits the words of one command line. Raises UsageError for words that are not known.

    ``commands``: the subcommands, and the global flags as its parameters.
    """

    def __init__(self, commands: click.Group, ctx: click.Context) -> None:
        self.commands = commands
        self.ctx = ctx
        self.globals = _by_name(commands.get_params(ctx))

    def split(self, args: Iterable[str]) -> Line:
        """The line of these words."""
        words = list(args)
        flags: list[str] = []
        model: str | None = None
        while words:
            word = words.pop(0)
            if _is_flag(word):
                taken = self._take(self.globals, word, words)
                if taken is None:
                    return self._of_default(Line(flags, model, [word, *words]))
                flags += taken
            elif model is None and self._command(word) is None:
                if word in RESERVED["subcommand"] and not Path(word).exists():
                    raise click.UsageError(no_such_command(word, []), self.ctx)
                model = word
            elif model is None and self._wants_model(word, [*flags, *words]):
                model = self._model_among(word, words)
                return self._of_command(Line(flags, model, [word, *words]))
            else:
                return self._of_command(Line(flags, model, [self._known(word), *words]))
        if model is None or self.ctx.resilient_parsing:
            return Line(flags, model, [])
        self._check_spelling(model)
        return Line(flags, model, [DEFAULT])

    def _of_default(self, line: Line) -> Line:
        """The line of the default subcommand, which was not named: its first flag is the first of ``line.command``."""
        first, *later = line.command
        if not self.ctx.resilient_parsing:
            named = self._named_in([first, *later])
            if named is not None or (line.model is None and first.partition("=")[0] not in self._own(DEFAULT)):
                self._no_such_flag(first, named, line.flags)
            if line.model is None:
                raise click.UsageError(f"no MODEL is named before {first}", self.ctx)
        return self._of_command(Line(line.flags, line.model, [DEFAULT, *line.command]), named=False)

    def _of_command(self, line: Line, *, named: bool = True) -> Line:
        """The global flags among those of the subcommand, taken out of there.

        ``named``: whether the subcommand was; else nothing stands behind it, and a flag that both have is global.
        """
        name, *words = line.command
        if HELP & {*line.flags} and not self.ctx.resilient_parsing:
            return Line([flag for flag in line.flags if flag not in HELP], line.model, [name, "--help"])
        if self.ctx.resilient_parsing:
            return line  # in completion, subcommands know the global flags themselves
        own = self._own(name)
        anywhere = self.globals if isinstance(self._command(name), ModelCommand) else _manners(self.globals)
        if not named:
            own = {name: option for name, option in own.items() if name not in anywhere or name in HELP}
        flags, kept = list(line.flags), [name]
        while words:
            word = words.pop(0)
            if word == "--":
                kept += [word, *words]
                break
            if not _is_flag(word):
                kept.append(word)
                if isinstance(group := self._command(name), click.Group):
                    name = f"{name} {self._known(word, group)}"
                    own = self._own(name)
            elif (taken := self._take(own, word, words)) is not None:
                kept += taken
            elif (taken := self._take(anywhere, word, words)) is not None:
                flags += taken
            else:
                self._no_such_flag(word, name, flags)
        return Line(flags, line.model, kept)

    def _named_in(self, words: list[str]) -> str | None:
        """The first word that is a subcommand, and no value of a flag."""
        known = self.globals | self._own(DEFAULT)
        while words:
            word = words.pop(0)
            if _is_flag(word):
                self._take(known, word, words)
            elif isinstance(self._command(word), ModelCommand):
                return word
        return None

    def _take(self, known: Mapping[str, click.Option], word: str, later: list[str]) -> list[str] | None:
        """A flag and its values, taken from ``later``; ``None`` when it is not among those that are known."""
        long = word.startswith("--")
        name = word.partition("=")[0] if long else word[:2]
        option = known.get(name)
        attached = "=" in word if long else len(word) > 2
        if option is None or (attached and not long and f"-{word}".partition("=")[0] in self._long_names):
            return None
        if option.is_flag or option.count:
            if attached and not long:  # several flags in one word, as -qO
                later.insert(0, f"-{word[2:]}")
                return [name]
            return [word]
        wanted = option.nargs - attached
        if isinstance(option, Flag) and option.alone and (not later or _is_flag(later[0])):
            wanted = 0
        if len(later) < wanted and not self.ctx.resilient_parsing:
            raise click.UsageError(f"{name} wants a value: {name} {option.make_metavar(self.ctx)}", self.ctx)
        values, later[:wanted] = later[:wanted], []
        return [word, *values]

    def _no_such_flag(self, word: str, command: str | None, flags: list[str]) -> NoReturn:
        """Refuse a flag that is not known where it stands: say where it would be, or which name is near.

        ``command``: the subcommand that is meant, if any is named; ``flags``: the global flags that were given.
        """
        name = word.partition("=")[0]
        owners = [owner for owner in self._model_commands() if name in self._own(owner)]
        place = command if command in owners else owners[0] if owners else None
        if place is not None:
            problem = f"{name} is no global flag: flags of a subcommand stand after it"
            if place != command:
                problem = f"{name} is a flag of {place!r}, not of {command or DEFAULT!r}"
            raise click.UsageError(f"{problem}, as in '{line_with(flags, None, place, name)}'", self.ctx)
        if name in self.globals:
            raise click.UsageError(f"{name} is about MODEL, and {command} works on none", self.ctx)
        distribution = brings_flag(name)
        if distribution is not None and distribution not in map(brings_flag, self._long_names):
            raise click.UsageError(_comes_with("the flag", name, distribution), self.ctx)
        own = self._own(command or DEFAULT)
        near = meant(name, [*own, *self.globals])
        if f"-{name}" in self._long_names:
            near = [f"-{name}"]
        if near:
            kind = "the global flag" if near[0] in self.globals and near[0] not in own else "the flag"
            raise click.UsageError(f"there is no flag {name}, did you mean {kind} {near[0]}?", self.ctx)
        lists = f"'tract --help' lists the global flags, 'tract {command or DEFAULT} --help' those of a subcommand"
        raise click.UsageError(f"there is no flag {name}; {lists}", self.ctx)

    @cached_property
    def _long_names(self) -> set[str]:
        """The long names of every flag of the frame and of the subcommands that work on a model."""
        own = (name for command in self._model_commands() for name in self._own(command))
        return {name for name in (*self.globals, *own) if name.startswith("--")}

    def _own(self, command: str) -> dict[str, click.Option]:
        found = self._command(command)
        if found is None:
            return {}
        return _by_name(found.get_params(click.Context(found, help_option_names=sorted(HELP))))

    def _command(self, name: str) -> click.Command | None:
        """The subcommand of a name; of a group, as ``group subcommand``."""
        first, *others = name.split(" ")
        found = self.commands.get_command(self.ctx, first)
        for part in others:
            found = found.get_command(self.ctx, part) if isinstance(found, click.Group) else None
        return found

    def _model_commands(self) -> list[str]:
        return [name for name in self.commands.list_commands(self.ctx) if isinstance(self._command(name), ModelCommand)]

    def _wants_model(self, word: str, others: list[str]) -> bool:
        """Whether a subcommand that stands before MODEL is one that works on it."""
        wanted = isinstance(self._command(word), ModelCommand)
        return wanted and not HELP & {*others} and not self.ctx.resilient_parsing

    def _model_among(self, command: str, words: list[str]) -> str:
        """The first of the words behind a subcommand that is no flag and no value of one, taken out of them."""
        known = {**self.globals, **self._own(command)}
        later = list(words)
        while later:
            word = later.pop(0)
            if not _is_flag(word):
                del words[len(words) - len(later) - 1]
                return word
            self._take(known, word, later)
        line = line_with([], None, command, *words)
        raise click.UsageError(f"{command} works on a model: write '{line}'", self.ctx)

    def _known(self, word: str, group: click.Group | None = None) -> str:
        """A word that is a subcommand: of the frame, or of a group of them. Raises UsageError."""
        names = (group or self.commands).list_commands(self.ctx)
        if word not in names and not self.ctx.resilient_parsing:
            if group is None and Path(word).is_file():
                raise click.UsageError(a_file_too_much(word), self.ctx)
            raise click.UsageError(no_such_command(word, names), self.ctx)
        return word

    def _check_spelling(self, model: str) -> None:
        """Refuse a word that was meant as a subcommand and taken for MODEL."""
        if Path(model).exists():
            return
        near = meant(model, self.commands.list_commands(self.ctx))
        if near:
            raise click.UsageError(f"no file and no subcommand is named {model!r}, did you mean {near[0]!r}?", self.ctx)


def no_such_command(word: str, names: list[str]) -> str:
    """What to say of a subcommand that does not exist, or that a distribution of this project would bring."""
    if word in RESERVED["subcommand"]:
        return _comes_with("the subcommand", repr(word), *RESERVED["subcommand"][word])
    near = meant(word, names)
    there = f"; there are {', '.join(names)}" if names else ""
    return f"no subcommand {word!r}" + (f", did you mean {near[0]!r}?" if near else there)


def _comes_with(what: str, name: str, distribution: str) -> str:
    return f"{what} {name} comes with {distribution}\n  hint: {how_to_get(distribution)}"


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def _by_name(params: Iterable[click.Parameter]) -> dict[str, click.Option]:
    options = [param for param in params if isinstance(param, click.Option)]
    return {name: option for option in options for name in (*option.opts, *option.secondary_opts)}


def _manners(options: Mapping[str, click.Option]) -> dict[str, click.Option]:
    """Those flags that mean something without a model too."""
    return {name: option for name, option in options.items() if getattr(option, "group", None) == MANNERS}
