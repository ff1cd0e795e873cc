"""An application of ASGI in Ray Serve: one for each replica, made there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_core.errors import PluginError
from tract_core.importing import imported


def deployment(application: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """A bound deployment for ``ray.serve.run``, which answers with the application that ``application(*arguments)`` is.

    ``application``: makes one of ASGI, in each replica; it travels to them with its ``arguments``. ``options``: those
    of ``serve.deployment``, as ``num_replicas``, ``ray_actor_options``, ``max_ongoing_requests``. Raises PluginError
    where Ray Serve is not installed.
    """
    serve = _serve()

    def made() -> Any:
        return application(*arguments)

    @serve.deployment(**{"name": "tract"} | options)
    @serve.ingress(made)
    class Served:
        """What answers is the application."""

    return Served.bind()


def _serve() -> Any:
    try:
        return imported("ray.serve")
    except ImportError as error:
        raise PluginError("Ray Serve is not installed", hint="pip install 'ray[serve]'") from error
