"""Where the stages of plugins come, and which have no place."""

from __future__ import annotations

import pytest

from tract_core.cli.stages import check_places
from tract_core.errors import PluginError
from tract_core.plugins.descriptor import Option, Stage
from tract_core.plugins.stages import STAGES, in_order, what_is_wrong
from tract_core.testing.checkup import check_up
from tract_core.testing.toys import toy_registry


def added(**after: str) -> dict[str, Stage]:
    return {name: Stage(name, before, "pulse", Option("for a test")) for name, before in after.items()}


def test_each_comes_behind_the_one_that_it_names() -> None:
    names = in_order(added(b="declutter", a="declutter", deep="b", late="before-optimize"))
    assert [name for name in names if name in STAGES] == list(STAGES)
    place = names.index("declutter")
    assert names[place : place + 4] == ["declutter", "a", "b", "deep"]
    assert names[-2:] == ["late", "optimize"]


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        ({"mine": "nowhere"}, "the stage 'mine' comes after 'nowhere', which is no stage"),
        ({"mine": "load"}, "the stage 'mine' comes after 'load', where no typed model is"),
        ({"mine": "optimize"}, "the stage 'mine' comes after 'optimize', where no typed model is"),
        ({"mine": "mine"}, "the stage 'mine' comes in the end after itself"),
        ({"mine": "yours", "yours": "mine"}, "the stage 'mine' comes in the end after itself"),
        ({"mine": "yours", "yours": "typo"}, "the stage 'mine' comes after 'typo', which is no stage"),
    ],
)
def test_one_without_a_place_is_left_out(after: dict[str, str], problem: str) -> None:
    stages = added(**after)
    error = what_is_wrong(stages["mine"], stages)
    assert error is not None
    assert (error.problem, error.hint) == (
        problem,
        "let it come after one of type, declutter, set, set-declutter, before-optimize",
    )
    assert in_order(stages) == list(STAGES)


def test_the_check_up_finds_stages_without_a_place() -> None:
    stages = [*added(lost="nowhere").values(), Stage("fine", "type", "set_symbols", Option("for a test"))]
    (found,) = [one for one in check_up(toy_registry("toys", stages=stages)) if one.name == "toys"]
    assert [(one.doing, one.problem) for one in found.failures] == [
        ("stage 'lost'", "the stage 'lost' comes after 'nowhere', which is no stage"),
        ("stage 'lost'", "there is no transform 'pulse'"),
    ]


def test_a_stage_without_a_place_is_refused_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = toy_registry("toys", stages=list(added(lost="nowhere").values()))
    monkeypatch.setattr("tract_core.cli.stages.default_registry", lambda: registry)
    with pytest.raises(PluginError, match=r"plugin of toys: the stage 'lost' comes after 'nowhere'"):
        check_places(["lost"])
