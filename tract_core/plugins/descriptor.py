"""What is known of each plugin: who brings it, how it is doing, and what went wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from tract_core.errors import TractError
from tract_core.frozen import frozen

CORE_PLUGIN: Final = "core"


@frozen
class Option:
    """A flag of the command: what it is for, the type of its value, and how the help writes that value.

    ``kind``: ``bool`` for a flag without a value, which is on or off; else ``str``, ``int`` or ``float``. ``flag``:
    how the flag is written, where that is not made of the keyword. ``metavar``: that word for the value. ``alone``: the
    value that it has where it stands without one; the empty text where it has to have one.
    """

    help: str
    kind: type[bool] | type[int] | type[float] | type[str] = bool
    metavar: str = ""
    flag: str = ""
    alone: str = ""


Options = Mapping[str, "str | Option"]
"""Flags by keyword; a text is short for an `Option` without a value."""


@frozen
class Export:
    """Something that the writer of a format makes of a model, with a flag of ``dump`` that takes the file to write.

    ``keywords``: what the writer is made with, beside what its own flags say. ``help``: what that flag is for;
    ``metavar``: what its value is called.
    """

    help: str
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metavar: str = "FILE"


@frozen
class Format:
    """A model format: its name, the file endings it claims, and where its reader and its writer are.

    ``loader`` is ``"module:Class"``; the class needs no arguments and has ``load(path)``, which returns an
    `InferenceModel` or a `TypedModel`. It is imported when a model of the format is first loaded. It may have
    ``examine(path)``, which returns a `tract_core.analysis.findings.Examination`, for ``tract MODEL doctor``, and
    ``load_bytes(content)`` and ``examine_bytes(content)``; and ``load_object(object)``, for objects of other libraries,
    whose classes ``objects`` names, as ``"onnx.onnx_ml_pb2:ModelProto"``. A class that takes ``limits``, a
    `tract_core.limits.LoadLimits`, is given what ``--limit`` says.

    ``flags``: what the class takes as keywords, and what each is for: ``{"ignore_value_info": "Do not ..."}`` of the
    format ``onnx`` is the flag ``--onnx-ignore-value-info``, and an `Option` says the type of a value.

    ``writer``: likewise a class with ``write(model, path)``, which writes a `TypedModel` whole, or raises and leaves
    what was there, as `tract_core.saving.whole_file` does. It may have ``text(model)``, for what is written to standard
    output, and ``to_bytes(model)``, the content of a file. ``forms``: the endings that it tells apart, each with what
    such a file is good for; ``tract cook`` writes the first where nobody names one. ``writer_flags``: its keywords,
    flags of the commands that write; ``settings``: those of its keywords that are global flags, as they hold for
    whatever writes the format on the way.

    ``exports``: what ``dump`` can write, by the end of the flag: with ``{"": ..., "tar": ...}`` the format ``nnef`` has
    the flags ``--nnef FILE`` and ``--nnef-tar FILE``.

    ``handle``: the class that users hold, which needs no arguments: ``tract.onnx()`` makes one. Without it they get a
    `tract_core.api.loading.Loader`.

    ``entry``: the file that makes a folder a model of this format; the loader is given the folder.

    ``signatures``: how its files may begin, by the place of the bytes: ``((0, b"CRVO"),)``. They tell the format of
    what comes without a name (``tract.load_bytes``). Of a format without any, what begins like no other may be.
    ``extensions``: these endings. ``summary``: what the format is, in a sentence.
    """

    name: str
    extensions: tuple[str, ...]
    loader: str
    summary: str = ""
    flags: Options = field(default_factory=dict[str, "str | Option"])
    writer: str = ""
    writer_flags: Options = field(default_factory=dict[str, "str | Option"])
    handle: str = ""
    entry: str = ""
    settings: Options = field(default_factory=dict[str, "str | Option"])
    exports: Mapping[str, Export] = field(default_factory=dict[str, Export])
    signatures: tuple[tuple[int, bytes], ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict[str, str])
    objects: tuple[str, ...] = ()

    @property
    def writer_keywords(self) -> tuple[str, ...]:
        """All that the writer takes."""
        return (*self.writer_flags, *self.settings)

    def ending_of(self, path: Path) -> str:
        """The longest of its endings that a path has; the empty one where it has none."""
        name = path.name.lower()
        return max((one for one in self.extensions if name.endswith(one)), key=len, default="")


@frozen
class Stage:
    """A place in the command's pipeline where a transform is applied, with a flag of its own: ``--NAME VALUE``.

    ``after``: the stage behind which it comes. ``transform``: the name of the transform. ``parameter``: the field of
    the transform that the flag's value is given to; the empty one where the flag has no value. ``settings_of``: a
    format, whose `Format.settings` are fields of the transform as well.
    """

    name: str
    after: str
    transform: str
    option: Option
    parameter: str = ""
    settings_of: str = ""


@frozen
class RuntimeOffer:
    """A runtime: where its class is, as ``"module:Class"``, and how good a default it is.

    ``rank``: of the runtimes that have one, ``"default"`` stands for the one with the highest. They need nothing
    but a processor. ``None`` for a runtime that is used only where it is asked for, as one that needs a device.
    ``loader``: that text.
    """

    loader: str
    rank: int | None = None


class PluginState(Enum):
    """How a plugin is doing: installed and not yet needed, in use, failed somewhere, left out, or for another core."""

    AVAILABLE = "available"
    LOADED = "loaded"
    FAILED = "failed"
    BLOCKED = "blocked"
    INCOMPATIBLE = "incompatible"


@frozen
class Failure:
    """One thing that went wrong: what was being done, the error in a sentence, what to do about it, the traceback.

    ``doing``, ``problem``, ``fix``, ``trace``: these four.
    """

    doing: str
    problem: str
    fix: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.doing}: {self.problem}"


@dataclass(slots=True)
class PluginRecord:
    """One installed plugin: who brings it, which hooks it implements, and how it is doing.

    ``name`` is that of its entry point, ``target`` where the entry point leads. A plugin in the state *failed* still
    serves with whatever of it did not fail. ``remarks``: what is good to know, and no failure.
    """

    name: str
    distribution: str
    version: str
    target: str
    state: PluginState = PluginState.AVAILABLE
    hooks: tuple[str, ...] = ()
    failures: list[Failure] = field(default_factory=list[Failure])
    remarks: list[str] = field(default_factory=list[str])

    @property
    def cause(self) -> str | None:
        """The first failure, in one line."""
        return str(self.failures[0]).splitlines()[0] if self.failures else None

    def used(self) -> None:
        """Note that something of the plugin was loaded."""
        if self.state is PluginState.AVAILABLE:
            self.state = PluginState.LOADED

    def fail(self, doing: str, error: BaseException) -> bool:
        """Record a failure. Returns whether it is a new one."""
        if self.state is not PluginState.INCOMPATIBLE:
            self.state = PluginState.FAILED
        problem = error.problem if isinstance(error, TractError) else f"{type(error).__name__}: {error}"
        if any((known.doing, known.problem) == (doing, problem) for known in self.failures):
            return False
        import traceback

        trace = "".join(traceback.format_exception(error))
        self.failures.append(Failure(doing, problem, self._fix(error), trace))
        return True

    def _fix(self, error: BaseException) -> str:
        if isinstance(error, TractError) and error.hint:
            return error.hint
        without = f"or leave the plugin out with TRACT_PLUGINS_BLOCK={self.name}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            return f"install what provides the module {error.name!r}, {without}"
        return f"update {self.distribution}, report this to its authors, {without}"
