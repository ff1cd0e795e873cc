"""The conformance kit fails a runtime for every point of the contract that it misses, and for no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tract_core.testing import conformance

FAILS: dict[str, set[tuple[str, str]]] = {
    "assertions": {("test_assertions_of_the_scope_hold", "DID NOT RAISE")},
    "conditions": {
        ("test_conditions_of_operators_hold", "DID NOT RAISE"),
        ("test_conditions_hold_in_the_middle_of_a_run", "DID NOT RAISE"),
    },
    "middle": {
        ("test_conditions_hold_in_the_middle_of_a_run", "DID NOT RAISE"),
        ("test_sizes_that_a_run_finds_are_limited", "DID NOT RAISE"),
    },
    "max_tensor_bytes": {
        ("test_too_large_tensors_are_refused", "DID NOT RAISE"),
        ("test_sizes_that_a_run_finds_are_limited", "DID NOT RAISE"),
    },
    "max_run_bytes": {("test_all_tensors_of_a_run_are_limited", "DID NOT RAISE")},
    "deadline": {("test_the_time_of_a_run_is_limited", "DID NOT RAISE")},
    "bodies": {("test_bodies_know_the_sizes_around_them", "value of symbol N is not known")},
    "constants": {
        (f"test_constants_may_lie_in_any_way[{layout}]", "Arrays are not equal")
        for layout in ("unaligned", "transposed", "stride 0", "backwards")
    },
    "reset": {("test_reset_makes_a_state_fresh", "Arrays are not equal")},
    "out": {
        ("test_arrays_of_the_caller_are_filled", "is array"),
        ("test_states_keep_no_array_of_the_caller", "Arrays are not equal"),
        *(
            (f"test_arrays_of_the_caller_that_do_not_fit_are_refused[{how}]", "DID NOT RAISE")
            for how in ("too few", "too many", "wrong size", "wrong rank", "wrong type")
        ),
    },
    "aliasing": {("test_outputs_share_no_memory_with_inputs", "outputs [0, 1, 2] are memory of an input")},
    "repeats": {("test_turns_that_are_repeated_are_right", "Not equal to tolerance")},
    "interleaved": {("test_states_take_turns", "Arrays are not equal")},
    "frozen": {("test_frozen_states_go_on_in_another_process", "KeyError: ")},
    "options": {("test_options_are_fields_with_defaults", "the class takes ['threads'], its fields are []")},
    "explain": {("test_plan_explains_every_node[in bodies]", "not placed")},
    "observe": {("test_observers_see_and_exchange_tensors", "Arrays are not equal")},
    "turns": {("test_observers_see_every_turn_of_a_state", "Arrays are not equal")},
    "symbols": {("test_sizes_are_told_from_outside", "value of symbol TOLD is not known")},
    "times": {("test_timings_are_of_the_nodes_that_run", "these are no node that runs")},
    "errors": {
        ("test_errors_name_the_node[in the model]", "does not name pick"),
        ("test_errors_name_the_node[in a body]", "does not name inner, pick"),
    },
}
"""For each lapse, the tests that fail, with a part of what they say."""


NAMES = ["careful", "careless", *(f"careless-{lapse}" for lapse in FAILS)]

Failures = dict[str, dict[str, str]]
"""For each runtime, the tests that failed, with what they said."""


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    folder = tmp_path_factory.mktemp("kit")
    found: Failures = {name: {} for name in NAMES}
    _run(folder, "contract and not another_process", NAMES, found)
    _run(folder, "another_process", ["careful", "careless", "careless-frozen"], found)  # which takes time for each
    return found


CONTRACT = [
    f"tract_core.testing.conformance.{path.stem}"
    for path in Path(conformance.__file__).parent.glob("test_contract*.py")
]
"""The modules of the kit about the contract. All others have thousands of cases for each runtime, all left out."""


def _run(folder: Path, tests: str, runtimes: list[str], found: Failures) -> None:
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "--pyargs", *sorted(CONTRACT), "-k", tests]
    command += ["--tract-registry", "careless:registry", *(f"--tract-runtime={name}" for name in runtimes)]
    command += [f"--junitxml={report}", "-q", "-n", "0", "-p", "no:cacheprovider"]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert report.exists(), done.stdout + done.stderr
    for case in ElementTree.parse(report).iter("testcase"):
        test, _, parameters = case.attrib["name"].removesuffix("]").partition("[")
        runtime = max((name for name in runtimes if name in parameters), key=len)
        rest = parameters.replace(runtime, "").strip("-")
        for one in case:
            if one.tag in {"failure", "error"}:
                found[runtime][f"{test}[{rest}]" if rest else test] = f"{one.attrib['message']}\n{one.text}"


def test_a_careful_runtime_passes(failures: Failures) -> None:
    assert failures["careful"] == {}


@pytest.mark.parametrize("lapse", FAILS)
def test_each_lapse_fails(failures: Failures, lapse: str) -> None:
    found = failures[f"careless-{lapse}"]
    assert set(found) == {test for test, _ in FAILS[lapse]}
    for test, message in FAILS[lapse]:
        assert message in found[test]


def test_a_runtime_that_misses_everything_fails_for_everything(failures: Failures) -> None:
    assert set(failures["careless"]) >= {test for fails in FAILS.values() for test, _ in fails}
