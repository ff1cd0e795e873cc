"""Operators of frozen graphs give what TensorFlow gives."""

from __future__ import annotations

import graphdef_cases as cases
import pytest

from tract_core.errors import TractError

NAMES = cases.names()
IDS = [f"{family}-{name}" for family, name in NAMES]

LESS_EXACT = {
    "ResizeBicubic": 100,  # TensorFlow takes weights from a table of 1024 places
    "Mfcc": 10,
}
"""How much more than usual the results of an operator may differ."""


def factor(name):
    return next((much for op, much in LESS_EXACT.items() if name.startswith(op)), 1)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize(("family", "name"), NAMES, ids=IDS)
def test_as_tensorflow(family, name, runtime):
    graph, given, wanted = cases.case(family, name)
    found = cases.run(cases.load(graph, len(wanted)), given, runtime)
    cases.assert_close(found, wanted, factor(name))


WANT_SIZES = {
    "Conv2D_computed": "the kernel's places are loops of the program",
    "Conv2D_groups": "into how many groups channels are cut depends on how many there are",
    "Dilation2D_SAME": "the kernel's places are nodes",
    "Dilation2D_VALID": "the kernel's places are nodes",
    "GatherNd": "the rank of the result depends on the last axis of the places",
    "GatherNd_rows": "the rank of the result depends on the last axis of the places",
    "Mfcc": "bands are cut of as many frequencies as there are",
    "Mfcc_options": "bands are cut of as many frequencies as there are",
    "MatrixDiagPart_wide": "matrices of unknown sizes are taken to be square",
    "MatrixDiagPartV3": "matrices of unknown sizes are taken to be square",
    "CombinedNonMaxSuppression_shared_5": "whether classes share boxes is told by a size",
    "CombinedNonMaxSuppression_shared_40": "whether classes share boxes is told by a size",
    "CombinedNonMaxSuppression_own_5": "whether classes share boxes is told by a size",
    "CombinedNonMaxSuppression_own_40": "whether classes share boxes is told by a size",
}
"""Cases that cannot be computed where no size is known, and why."""


@pytest.mark.parametrize(("family", "name"), NAMES, ids=IDS)
def test_as_tensorflow_without_sizes(family, name):
    graph, given, wanted = cases.case(family, name)
    model = cases.without_sizes(cases.load(graph, len(wanted)))
    if name in WANT_SIZES:
        with pytest.raises(TractError):
            cases.run(model, given)
        return
    found = cases.run(model, given)
    if name == "Squeeze":  # as in other formats, a size that nobody names is not taken to be 1
        assert found[0].shape == given["x0"].shape
        return
    cases.assert_close(found, wanted, factor(name))
