"""The global flags, as they were read: what is to be loaded, and what is to be made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from typing import TYPE_CHECKING, Any

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.cli.formats import FormatFlag
    from tract_core.cli.readings import Context
    from tract_core.dims import Dim
    from tract_core.dims.assertion import Assertion
    from tract_core.limits import LoadLimits


@frozen
class GlobalFlags:
    """The global flags, under the names that `options.global_options` gives them.

    ``given``: the words of the command line that they were read from. ``of_format``: the flags of a format's
    loader, with their values, ``of_writer``: those of writers. ``staged``: the values of the flags of stages that
    plugins add, by stage. The other fields are said by the help of these flags.
    """

    _: KW_ONLY
    model: str | None
    format_name: str | None = None
    inputs: tuple[str, ...] = ()
    image_mean: tuple[float, ...] | None = None
    image_std: tuple[float, ...] | None = None
    facts_bundle: str | None = None
    constantize: tuple[str, ...] = ()
    override_fact: tuple[str, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    limits: LoadLimits | None = None
    left_context: tuple[Context, ...] = ()
    right_context: tuple[Context, ...] = ()
    input_nodes: tuple[str, ...] = ()
    output_nodes: tuple[str, ...] = ()
    stage: str | None = None
    declutter_step: int | None = None
    transforms: tuple[str, ...] = ()
    settings: tuple[tuple[str, Dim], ...] = ()
    optimize: bool = False
    runtime: str = "default"
    check_patches: bool = False
    timeout: float | None = None
    machine_friendly: bool = False
    verbose: int = 0
    debug: bool = False
    of_format: Mapping[FormatFlag, Any] = field(default_factory=dict["FormatFlag", Any])
    of_writer: Mapping[FormatFlag, Any] = field(default_factory=dict["FormatFlag", Any])
    staged: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given: tuple[str, ...] = ()

    def settings_of(self, format_name: str) -> dict[str, Any]:
        """The keywords that global flags give the writer of a format."""
        return {flag.keyword: value for flag, value in self.of_writer.items() if flag.format_name == format_name}
