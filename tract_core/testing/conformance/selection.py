"""What a run of the kit is made of: which runtimes, which cases, which known gaps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tract_core.api.runtime import runtime_for_name
from tract_core.errors import TractError
from tract_core.plugins import PluginState, Registry, default_registry
from tract_core.plugins.references import load_object
from tract_core.testing.case import CASES, Case
from tract_core.testing.checks import CHECKS, Bench
from tract_core.testing.gaps import KNOWN_GAPS, Gap


def chosen_registry(config: pytest.Config) -> Registry:
    """The registry of ``--tract-registry``, or that of the installed plugins. Raises UsageError, with the reason."""
    reference: str | None = config.getoption("--tract-registry")
    if reference is None:
        return default_registry()
    try:
        registry = load_object(reference)()
    except TractError as error:
        raise _usage_error("--tract-registry", error) from error
    except ImportError as error:
        raise pytest.UsageError(f"--tract-registry {reference}: {error}") from error
    if not isinstance(registry, Registry):
        found = type(registry).__name__
        raise pytest.UsageError(
            f"--tract-registry {reference} returned a {found}, wanted a tract_core.plugins.Registry"
        )
    return registry


def chosen_runtimes(config: pytest.Config, registry: Registry) -> dict[str, Bench]:
    """The runtimes of ``--tract-runtime``, by name; without it, every installed one that works here.

    Raises UsageError for one that is not known, or does not work here, with the reason.
    """
    asked: list[str] | None = config.getoption("--tract-runtime")
    benches: dict[str, Bench] = {}
    for name in asked or registry.runtimes():
        try:
            runtime = runtime_for_name(name, registry).backend
        except TractError as error:
            if asked:
                raise _usage_error("--tract-runtime", error) from error
        else:
            benches[runtime.name] = Bench(runtime, registry)
    return benches


def _usage_error(flag: str, error: TractError) -> pytest.UsageError:
    """In one line."""
    return pytest.UsageError(f"{flag}: {error.problem}{f' ({error.hint})' if error.hint else ''}")


def all_cases(registry: Registry) -> list[Case]:
    """Every case of every distribution."""
    return [case for cases in registry[CASES].rows().values() for case in cases]


def gaps_of(registry: Registry, runtime: str) -> Sequence[Gap]:
    """What a runtime is known not to do yet."""
    return registry[KNOWN_GAPS].find(runtime) or ()


def case_parameters(config: pytest.Config) -> list[object]:
    """A parameter set ``(bench, case, check)`` per runtime, case and check; a known gap must fail."""
    registry = chosen_registry(config)
    sets: list[object] = []
    for name, bench in chosen_runtimes(config, registry).items():
        gaps = gaps_of(registry, name)
        for case in all_cases(registry):
            for check in CHECKS:
                gap = next((gap for gap in gaps if gap.covers(case.name, check)), None)
                marks = [pytest.mark.xfail(reason=gap.reason, strict=True)] if gap else []
                sets.append(pytest.param(bench, case, check, marks=marks, id=f"{name}-{case}-{check}"))
    return sets


def bench_parameters(config: pytest.Config) -> list[object]:
    """One parameter per chosen runtime."""
    return [pytest.param(bench, id=name) for name, bench in chosen_runtimes(config, chosen_registry(config)).items()]


def plugin_parameters(config: pytest.Config) -> list[object]:
    """A parameter set ``(registry, plugin)`` per plugin that is not left out."""
    registry = chosen_registry(config)
    kept = [record for record in registry.plugins() if record.state is not PluginState.BLOCKED]
    return [pytest.param(registry, record.name, id=record.name) for record in kept]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """For the modules of the kit: ``bench``, ``case`` and ``check``; ``bench`` alone; ``registry`` and ``plugin``."""
    if "plugin" in metafunc.fixturenames:
        metafunc.parametrize(("registry", "plugin"), plugin_parameters(metafunc.config))
    elif "check" in metafunc.fixturenames:
        metafunc.parametrize(("bench", "case", "check"), case_parameters(metafunc.config))
    elif "bench" in metafunc.fixturenames:
        metafunc.parametrize("bench", bench_parameters(metafunc.config))
