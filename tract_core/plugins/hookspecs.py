"""The hooks that a plugin can implement: what each returns, when it is asked, and what it must not do.

Hooks take no arguments and return data: names, and texts ``"module:attribute"`` that lead to the code. The code behind
a text is imported when it is first used. A plugin module imports nothing heavy, opens no device, reads no file, and
asks no registry. An answer that is not what its hook wants is left out whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from tract_core.plugins.descriptor import Format, RuntimeOffer, Stage

PROJECT = "tract"
API_VERSION = (1, 0)
"""The version of this seam. A plugin made for another first number, or for a later second one, is refused."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def tract_api_version() -> str:  # pyright: ignore[reportReturnType]: a specification has no body
    """The version of the seam that the plugin was written for, as ``"1.0"``. Every plugin must implement this one.

    Asked before any other hook, when plugins are looked up.
    """


@hookspec
def tract_tables() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]: a specification has no body
    """The tables that the plugin itself asks: ``{"onnx": "my_plugin.registry:ONNX"}``, each a `TableKey`.

    Asked at the first question to any table: the rows of the distribution that declares a table come first in it, and
    nobody replaces them. When everything is verified (``tract plugins --check``), only the rows of tables that somebody
    asks are loaded.
    """


@hookspec
def tract_rows() -> Mapping[str, Sequence[str] | Mapping[str, Any]]:  # pyright: ignore[reportReturnType]: a specification has no body
    """Which modules hold rows of which table: ``{"reference": ["my_plugin.ops.norm"], ...}``.

    Each module has a ``ROWS`` of type `Rows`. Asked at the first question to any table; a module is imported at the
    first question to a table that it is listed for. When one of its rows does not fit the table, none is taken; when
    somebody else was first with one, the others are. A plugin with many modules may return an index in the place of the
    list (`tract_core.plugins.index`): then a module is imported when one of its rows is needed.

    Tables of file formats are among them (``"onnx"``: how one operator of a file is wired). Rows for a table of a
    distribution that is not installed wait and do no harm: nothing asks the table, so that their modules are never
    imported, and may import that distribution.
    """


@hookspec
def tract_formats() -> Sequence[Format]:  # pyright: ignore[reportReturnType]: a specification has no body
    """Model formats that the plugin can load, and write. Names must be unique over all plugins.

    Asked at the first look-up of a format.
    """


@hookspec
def tract_transforms() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]: a specification has no body
    """Transforms by name: ``{"my_transform": "my_plugin.transforms:MyTransform"}``, each a frozen dataclass.

    Names must be unique over all plugins. Asked at the first look-up of a transform.
    """


@hookspec
def tract_stages() -> Sequence[Stage]:  # pyright: ignore[reportReturnType]: a specification has no body
    """Stages of the command's pipeline, each a transform with a flag of its own. Names must be unique over all plugins.

    Asked whenever ``tract`` starts.
    """


@hookspec
def tract_runtimes() -> Mapping[str, str | RuntimeOffer]:  # pyright: ignore[reportReturnType]: a specification has no body
    """Runtimes by name: ``{"toy": "my_plugin.runtime:ToyRuntime"}``, each a frozen dataclass.

    Its fields are its options, with defaults: ``threads: int = 1`` is written ``toy(threads=2)``. One that may be what
    ``"default"`` stands for is offered with its rank: ``RuntimeOffer("my_plugin.runtime:ToyRuntime", rank=10)``.

    Names must be unique over all plugins. Asked at the first look-up of a runtime. Open no device when the module is
    imported or the class constructed: ``why_unusable`` does that.
    """


@hookspec
def tract_commands() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]: a specification has no body
    """Subcommands of ``tract`` by name: ``{"hello": "my_plugin.cli:hello"}``, each a `click.Command`.

    One that works on MODEL is a `tract_core.cli.command.ModelCommand`. A `click.Group` is several that take no MODEL:
    ``tract pets feed``. Names must be unique over all plugins. Asked whenever ``tract`` starts; the code is imported
    when the command is used.
    """
