"""What the global flags ask for: a model, brought to a stage."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Final

import click

from tract_core.cli.global_flags import GlobalFlags
from tract_core.cli.printing.progress import ProgressLine, restore_terminal
from tract_core.errors import InputError
from tract_core.saving import discard_unfinished

if TYPE_CHECKING:
    from tract_core.api import runtime as api
    from tract_core.api.runnable import Runnable
    from tract_core.cli.pipeline import Pipeline
    from tract_core.cli.printing.console import Console
    from tract_core.model.typed import TypedModel
    from tract_core.runtime.protocol import Plan, Runtime


TIMED_OUT: Final = 124
"""Exit status when ``--timeout`` is over, as that of the command ``timeout``."""


class Request(GlobalFlags):
    """The global flags, and what they ask for: the model at a stage, the runtime, the console."""

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages of loading, each computed when it is asked for."""
        from tract_core.cli.pipeline import Pipeline
        from tract_core.cli.stages import check_places

        if self.model is None:
            raise InputError("no model was named", hint="write 'tract MODEL SUBCOMMAND'")
        self._check_runtime()
        check_places(self.staged)
        return Pipeline(self, self.say, self.prepare)

    def _check_runtime(self) -> None:
        """Refuse a runtime that is not installed, also where nothing is going to run."""
        from tract_core.plugins import default_registry
        from tract_core.plugins.missing import not_installed
        from tract_core.plugins.parameters import parse_call

        installed = ["default", *default_registry().runtimes()]
        name, options = parse_call(self.runtime)
        if name not in installed:
            raise not_installed("runtime", name, installed)
        if options:
            _ = self.chosen_runtime  # which refuses those that it does not have

    @property
    def final_stage(self) -> str:
        """Where loading stops: as ``--pass`` says, else after everything that changes the model was done."""
        return self.stage or ("optimize" if self.optimize else "before-optimize")

    def typed_model(self) -> TypedModel:
        """The model at the final stage; where that is before typing, as it would be wired at that point."""
        from tract_core.cli.pipeline import wired

        with self.progress("loading"):
            return wired(self.pipeline.at(self.final_stage))

    @cached_property
    def _chosen(self) -> api.Runtime:
        from tract_core.api.runtime import runtime_for_name

        return runtime_for_name(self.runtime)

    @property
    def chosen_runtime(self) -> Runtime:
        """The runtime of ``-r``. Raises PluginError when it does not work here."""
        return self._chosen.backend

    def prepare(self, model: TypedModel) -> Plan:
        """A model made ready to run on the runtime of ``-r``, once in a command. Raises Unsupported, or PluginError.

        The model that a plan runs in the place of the one that was given is ready to run, by the same plan.
        """
        from tract_core.api.runtime import calling
        from tract_core.runtime.protocol import running_model

        found = self._prepared.get(id(model))
        if found is not None:
            return found[1]
        with self.progress("preparing"), calling(self._chosen, "prepare"):
            plan = self.chosen_runtime.prepare(model)
        for one in (model, running_model(plan, model)):
            self._prepared[id(one)] = one, plan  # the model is kept, as its id is the key
        return plan

    def runnable(self, model: TypedModel) -> Runnable:
        """A model made ready to run, as users of the library hold it. Raises as `prepare` does."""
        from tract_core.api.runnable import Runnable

        return Runnable(model, self.prepare(model), self._chosen)

    @cached_property
    def _prepared(self) -> dict[int, tuple[TypedModel, Plan]]:
        return {}

    @cached_property
    def console(self) -> Console:
        """Where results are printed."""
        from tract_core.cli.printing.console import make_console

        return make_console(plain=self.machine_friendly)

    @cached_property
    def _progress(self) -> ProgressLine:
        return ProgressLine(silent=self.machine_friendly)

    @contextmanager
    def progress(self, doing: str) -> Generator[None]:
        """Show on standard error that something takes long."""
        with self._progress.running(self._of_model(doing)):
            yield

    def say(self, doing: str) -> None:
        """What is being done now, for whoever waits."""
        self._progress.say(self._of_model(doing))

    def _of_model(self, doing: str) -> str:
        return f"{doing} {self.model}" if self.model else doing

    @contextmanager
    def time_limit(self) -> Generator[None]:
        """End the process with status 124 when ``--timeout`` is over; what no thread can wait for never is."""
        if self.timeout is None or self.timeout > threading.TIMEOUT_MAX:
            yield
            return

        def stop() -> None:
            discard_unfinished()
            restore_terminal()
            click.echo(f"Error: not done after {self.timeout:g} s (--timeout)", err=True)
            os._exit(TIMED_OUT)

        timer = threading.Timer(self.timeout, stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def checking(self) -> AbstractContextManager[None]:
        """Verify the whole model after every patch, where ``--check-patches`` asks for it."""
        if not self.check_patches:
            return nullcontext()
        from tract_core.model.rewriter import checking_patches

        return checking_patches()
