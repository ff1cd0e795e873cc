"""What the global flags ask for: a model, brought to a stage."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from tract_core.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from tract_core.cli.pipeline import Pipeline
    from tract_core.model.typed import TypedModel
    from tract_core.runtime.protocol import Plan, Runtime


@dataclass(frozen=True, kw_only=True)
class Request:
    """The global flags, under the names that `options.global_options` gives them."""

    model: str | None
    format_name: str | None = None
    inputs: tuple[str, ...] = ()
    facts_bundle: str | None = None
    constantize: tuple[str, ...] = ()
    override_fact: tuple[str, ...] = ()
    assertions: tuple[str, ...] = ()
    input_nodes: tuple[str, ...] = ()
    output_nodes: tuple[str, ...] = ()
    stage: str | None = None
    declutter_step: int | None = None
    transforms: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    optimize: bool = False
    runtime: str = "default"
    check_patches: bool = False
    timeout: float | None = None
    machine_friendly: bool = False
    verbose: bool = False
    debug: bool = False

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages of loading, each computed when it is asked for."""
        from tract_core.cli.pipeline import Pipeline

        if self.model is None:
            raise InputError("no model was named", hint="write 'tract MODEL SUBCOMMAND'")
        if self.check_patches:
            os.environ["TRACT_CHECK_PATCHES"] = "1"
        return Pipeline(self)

    @property
    def final_stage(self) -> str:
        """Where loading stops: as ``--pass`` says, else after everything that changes the model was done."""
        return self.stage or ("optimize" if self.optimize else "before-optimize")

    def typed_model(self) -> TypedModel:
        """The model at the final stage. Raises InputError when that stage is before typing."""
        from tract_core.model.typed import TypedModel

        with self.progress("loading"):
            model = self.pipeline.at(self.final_stage)
        if not isinstance(model, TypedModel):
            raise InputError(
                f"at stage {self.final_stage!r} the model cannot run", hint="use --pass type, or a later one"
            )
        return model

    @cached_property
    def chosen_runtime(self) -> Runtime:
        """The runtime of ``-r``."""
        from tract_core.api.runtime import runtime_for_name

        return runtime_for_name(self.runtime).backend

    def prepare(self) -> Plan:
        """The model at the final stage, ready to run."""
        model = self.typed_model()
        with self.progress("preparing"):
            return self.chosen_runtime.prepare(model)

    @cached_property
    def console(self) -> Console:
        """Where results are printed."""
        from rich.console import Console

        if self.machine_friendly:
            return Console(no_color=True, width=10_000, highlight=False, emoji=False)
        return Console(highlight=False, emoji=False, soft_wrap=False)

    @contextmanager
    def progress(self, doing: str) -> Generator[None]:
        """Show on standard error that something takes long; nothing where that is no terminal."""
        from rich.console import Console

        console = Console(stderr=True)
        if self.machine_friendly or not console.is_terminal:
            yield
            return
        with console.status(f"{doing} {self.model}"):
            yield

    @contextmanager
    def time_limit(self) -> Generator[None]:
        """End the process with status 124 when ``--timeout`` is over."""
        if self.timeout is None:
            yield
            return

        def stop(*_: Any) -> None:
            click.echo(f"error: not done after {self.timeout:g} s (--timeout)", err=True)
            os._exit(124)

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self.timeout)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
