"""What Ray tells the process that runs here, where it is there."""

from __future__ import annotations

import sys
from typing import Any

from tract_core.errors import PluginError
from tract_core.importing import imported


def cpus_of_this_worker() -> int | None:
    """The processors that Ray has given to this worker, one at least; ``None`` outside of Ray."""
    here: Any = sys.modules.get("ray")
    if here is None or not here.is_initialized():
        return None
    context = here.get_runtime_context()
    if context.worker.mode != here.WORKER_MODE:
        return None
    return max(1, int(context.get_assigned_resources().get("CPU", 1)))


def is_reference(source: object) -> bool:
    """Whether something is a reference to an object in Ray's store."""
    here: Any = sys.modules.get("ray")
    return here is not None and isinstance(source, here.ObjectRef)


def ray() -> Any:
    """The package. Raises PluginError where it is not installed."""
    try:
        return imported("ray")
    except ImportError as error:
        raise PluginError("Ray is not installed", hint="pip install 'ray[data]'") from error
