"""Runtimes that break at one moment each."""

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_runtimes():
    """One per moment."""
    moments = ("Construction", "Question", "Prepare", "Run", "Lies")
    return {f"broken-{moment.lower()}": f"broken_runtime.runtimes:{moment}" for moment in moments} | {
        "broken-import": "broken_runtime.heavy:Import"
    }


@hookimpl
def tract_transforms():
    """A transform that breaks when it is applied."""
    return {"broken": "broken_runtime.runtimes:BrokenTransform"}
