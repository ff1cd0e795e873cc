"""The page of a model that is in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tract_view.document import document_of
from tract_view.page import whole_html
from tract_view.snapshots import Snapshots
from tract_view.timing import times_of

if TYPE_CHECKING:
    from tract_core.api.inference_model import InferenceModel
    from tract_core.api.model import Model
    from tract_core.api.runnable import Runnable


def page_of(
    model: InferenceModel | Model | Runnable,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    title: str = "model",
) -> str:
    """A page that shows a model, as HTML that needs nothing else. The model stays as it is.

    Of a `tract_core.Runnable` it also shows what computes each node, and with ``inputs``, as its ``run`` takes them,
    how long that takes. Raises TypeError for inputs of what does not run, InputError for those that do not fit.
    """
    from tract_core.api.model import Model
    from tract_core.api.runnable import Runnable

    taken = Snapshots()
    if not isinstance(model, Runnable):
        if inputs is not None:
            raise TypeError("inputs are for what runs: give model.into_runnable() in the place of the model")
        taken.take("the model", model.typed if isinstance(model, Model) else model.graph)
        return whole_html(document_of(title, taken.found, taken.constants))
    from tract_core.runtime.protocol import running_model

    taken.take("given", model.typed)
    taken.take_running(running_model(model.plan, model.typed), model.plan)
    if inputs is not None:
        from dataclasses import replace

        running = taken.found[-1]
        times = times_of(running.entries, model.profile_json(inputs), model.runtime.name())
        taken.found[-1] = replace(running, times=times)
    return whole_html(document_of(title, taken.found, taken.constants))
