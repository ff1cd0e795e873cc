from __future__ import annotations

import itertools

import pytest
from tract_torch.established.semantic_version import SemanticVersion

from tract_core.errors import InputError

ORDER = ["0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"]
ORDER += ["1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0"]


def test_the_order_is_that_of_semver() -> None:
    for low, high in itertools.combinations(ORDER, 2):
        one, other = SemanticVersion.from_str(low), SemanticVersion.from_str(high)
        assert one < other
        assert one < high
        assert other > low
        assert one <= other != one
        assert not one >= other


def test_text_and_back() -> None:
    for text in [*ORDER, "1.2.3-rc.1+build.5", "1.2.3+5"]:
        assert SemanticVersion.from_str(text).to_str() == text
    assert SemanticVersion.from_str("v0.23.8") == "0.23.8" == str(SemanticVersion(0, 23, 8))
    assert SemanticVersion(1, 2, 3, build="a") == SemanticVersion(1, 2, 3, build="b")
    assert hash(SemanticVersion(1, 2, 3, build="a")) == hash(SemanticVersion(1, 2, 3))
    assert SemanticVersion(1, 2, 3) != "latest"


@pytest.mark.parametrize("text", ["", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.x", "1.2.3 4"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no version"):
        SemanticVersion.from_str(text)


def test_a_number_is_no_version() -> None:
    with pytest.raises(InputError, match="wanted a version or its text, got float"):
        SemanticVersion.of(0.23)  # pyright: ignore[reportArgumentType]: a mistake
    with pytest.raises(TypeError):
        SemanticVersion(1, 2, 3) < 2  # noqa: B015  # pyright: ignore[reportUnusedExpression, reportOperatorIssue]: a mistake
