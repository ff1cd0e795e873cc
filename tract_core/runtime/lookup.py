"""Find a runtime by name among the installed plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import InputError, PluginError
from tract_core.plugins.parameters import build, parse_call
from tract_core.plugins.references import load_object

if TYPE_CHECKING:
    from tract_core.plugins import Registry
    from tract_core.plugins.descriptor import RuntimeOffer
    from tract_core.runtime.protocol import Runtime

GPU: Final = "gpu"
GPU_OR_CPU: Final = "gpu-or-cpu"
GPUS: Final = ("metal", "cuda")
"""The runtimes that ``gpu`` may stand for, the first one that works."""


Places = tuple[Mapping[str, str], str | None]
"""Where runtimes are, by name, as ``"module:Class"``, and the name of the default one."""


def find_known(name: str, options: Mapping[str, Any], places: Places) -> Runtime | None:
    """As `find_runtime`, where it is known where runtimes are; ``None`` where that has more to say."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        return None
    name, given = parse_call(name)
    known, default = places
    chosen = default if name == "default" else name
    if chosen is None or chosen not in known:
        return None
    try:
        runtime: Runtime = build(load_object(known[chosen]), chosen, {**given, **options}, "runtime", InputError)
        return runtime if runtime.why_unusable() is None else None
    except InputError:
        raise
    except Exception:  # it comes from a plugin, and `find_runtime` says which
        return None


def find_runtime(name: str, registry: Registry | None = None, options: Mapping[str, Any] | None = None) -> Runtime:
    """The runtime of that name, or for ``"default"`` the one of the highest rank that is installed.

    ``"gpu"`` stands for the first of `GPUS` that is installed and works here, ``"gpu-or-cpu"`` for the default one
    where there is none. ``name`` may say the options too, as ``"cpu(threads=2)"``.

    Raises PluginError for a name that is not known, with those that are and what would add it, and for a runtime that
    does not work on this machine, with the reason; InputError for an option that it does not have.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"a runtime is asked for by its name, a text; got {type(name).__name__}")
    from tract_core.plugins import default_registry
    from tract_core.plugins.missing import not_installed

    name, given = parse_call(name)
    registry = registry or default_registry()
    offers = registry.runtimes()
    if name in {GPU, GPU_OR_CPU} and name not in offers:
        return _gpu(name, registry, {**given, **(options or {})})
    chosen = default_name(offers) if name == "default" else name
    if chosen is None or chosen not in offers:
        raise not_installed("runtime", name, ["default", *offers])
    kind = registry.load("tract_runtimes", chosen)
    with registry.blaming("tract_runtimes", chosen, "set-up"):
        runtime: Runtime = build(kind, chosen, {**given, **(options or {})}, "runtime", InputError)
        reason = runtime.why_unusable()
    if reason is not None:
        hint = "ask for 'reference' to run with the plain NumPy interpreter" if name == "default" else None
        raise PluginError(f"runtime {chosen!r} does not work here: {reason}", hint=hint)
    return runtime


def _gpu(name: str, registry: Registry, options: Mapping[str, Any]) -> Runtime:
    """The first runtime for GPUs that works here. Raises PluginError, with what each lacks, where a GPU has to be."""
    offers, problems = registry.runtimes(), list[str]()
    for one in (one for one in GPUS if one in offers):
        try:
            return find_runtime(one, registry, options)
        except PluginError as error:
            problems.append(error.problem)
    if name == GPU_OR_CPU:
        return find_runtime("default", registry, options)
    if not problems:
        from tract_core.plugins.missing import not_installed

        raise not_installed("runtime", name, ["default", *offers])
    raise PluginError("; ".join(problems), hint=f"{GPU_OR_CPU!r} takes the processor where no GPU works")


def default_name(offers: Mapping[str, RuntimeOffer]) -> str | None:
    """The runtime that ``"default"`` stands for; ``None`` where none has a rank."""
    ranks = {name: offer.rank for name, offer in offers.items() if offer.rank is not None}
    return max(ranks, key=lambda name: ranks[name], default=None)
