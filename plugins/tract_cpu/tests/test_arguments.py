"""Arguments by name: in the order of the signature, and refused where names or counts are others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tract_cpu.kernels.transpose import TransposePlan
from tract_cpu.program.arguments import arguments, named
from tract_llvm.language.types import F32
from tract_llvm.program.storages import Address, Kind, Storage

PLAN = TransposePlan(F32, 8, 2)
SOURCE, TARGET = (Address(Storage(kind, 0)) for kind in (Kind.INPUT, Kind.OUTPUT))
LOOPS = [{"size": 2, "strides": (3, 4)}, {"size": 5, "strides": (6, 7)}]
GIVEN: dict[str, Any] = {
    "outer": LOOPS,
    "target": TARGET,
    "target_row": 11,
    "source": SOURCE,
    "source_row": 10,
    "along": 9,
    "down": 8,
}


def test_they_are_in_the_order_of_the_signature() -> None:
    assert arguments(PLAN, **GIVEN) == (8, 9, SOURCE, 10, TARGET, 11, 2, 3, 4, 5, 6, 7)


def test_texts_name_them() -> None:
    told = named(PLAN.signature, [str(one) for one in (8, 9, "a", 10, "b", 11, 2, 3, 4, 5, 6, 7, 99)])
    wanted = "down=8 along=9 source=a source_row=10 target=b target_row=11"
    assert told == f"{wanted} outer=(size=2 strides=(3 4); size=5 strides=(6 7)) 99"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"sorce": SOURCE}, "kernel 'transpose' takes no sorce, but down, along, source"),
        ({"outer": LOOPS[:1]}, "kernel 'transpose', outer takes 2 values, not 1"),
        ({"outer": 3}, "kernel 'transpose', outer takes 2 values, not one"),
        ({"outer": [1, 2]}, "kernel 'transpose', outer[0] takes names with values"),
        ({"outer": [{"size": 2}, LOOPS[1]]}, "kernel 'transpose', outer[0] lacks strides"),
        ({"outer": [LOOPS[0], {"size": 2, "strides": [1]}]}, "kernel 'transpose', outer[1], strides takes 2 values"),
        ({"down": [1, 2]}, "kernel 'transpose', down takes one value, not 2"),
    ],
)
def test_others_are_refused(other: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        arguments(PLAN, **(GIVEN | other))


def test_a_missing_one_is_refused() -> None:
    with pytest.raises(TypeError, match="kernel 'transpose' lacks down"):
        arguments(PLAN, **{name: value for name, value in GIVEN.items() if name != "down"})
