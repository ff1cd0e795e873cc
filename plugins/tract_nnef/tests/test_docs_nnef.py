"""``docs/nnef.md`` says which operators of other registries are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tract_nnef.registry import NNEF

from tract_core.plugins import default_registry

PAGE = (Path(__file__).parents[3] / "docs" / "nnef.md").read_text()


@pytest.mark.parametrize("registry", ["tract_transformers", "tract_pulse"])
def test_what_is_read_of_a_registry_is_listed(registry):
    (sentence,) = re.findall(rf"From `{registry}`,(.*?)are read", PAGE, re.DOTALL)
    keys = [key for key in default_registry()[NNEF].names() if key.startswith(f"{registry}/")]
    names = [key.removeprefix(f"{registry}/").removeprefix(f"{registry}_") for key in keys]
    assert re.findall(r"`(\w+)`", sentence) == sorted(names)
