"""Two hooks that break, and one that works."""

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_transforms():
    """Not what the contract says."""
    return ["broken_hook.transforms:Nothing"]


@hookimpl
def tract_commands():
    """Raises."""
    return {}["commands"]


@hookimpl
def tract_runtimes():
    """Fine, though the runtime itself does not work on any machine."""
    return {"absent": "broken_hook.absent:AbsentRuntime"}
