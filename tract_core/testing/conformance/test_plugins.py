"""Everything that the installed plugins bring can be loaded, and is used."""

from __future__ import annotations

import pytest

from tract_core.plugins import Registry
from tract_core.testing.checkup import check_up
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = ["pytest_generate_tests", "test_plugin"]


@pytest.mark.filterwarnings("ignore::tract_core.plugins.PluginWarning")  # it fails on what they say
def test_plugin(registry: Registry, plugin: str) -> None:
    """What ``tract plugins --check`` says of a plugin, with the tracebacks."""
    (record,) = (record for record in check_up(registry) if record.name == plugin)
    told = [f"{failure}\nwhat to do: {failure.fix}\n\n{failure.trace}" for failure in record.failures]
    if told:
        pytest.fail("\n".join(told), pytrace=False)
