"""Operators of tract-OPL go to the established engine as archives, and come back from it.

What that engine does otherwise is listed, each with the cases that show it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import established
import numpy as np
import pytest
from documents import run
from established import Refused, interchange
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

import tract_core as tract
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES, Case

FAMILIES = (
    *("downsample", "exp_norm", "fft", "gather", "grid_sample", "lrn", "non_zero", "norm", "one_hot", "range"),
    *("cumsum", "recurrent", "resize", "scan", "scatter", "slice", "submodel", "topk", "trilu"),
)
WRITER = NnefWriter(how=Writing(frozenset({"tract_core", "tract_onnx", "tract_extra"})))

UNKNOWN_TYPES = ("bf16", "string", "complex")
"""Element types that it does not have, or that are compiled out of it."""

REFUSED = {
    "InnerDimToComplex": "complex numbers are compiled out",
    "GatherNd": "negative indices end the process",
    "OneHot": "negative indices end the process",
    "ScatterNd": "negative indices are outside, or end the process",
    "GridSample-cubic-zeros-edges-B,C,H,W,3,f32": "a cubic in three dimensions ends the process",
    "GruEpilogue-f64": "only f32 and f16",
    "ExpUnitNorm-skip all": "only f32",
    "ExpMeanNorm-f16": "only f32",
    "DynSlice-empty": "an empty slice at the end is taken for one outside",
    "Scan-backward, last chunk is short": "a body is simplified as if all chunks were whole",
    "Scan-one short chunk": "a body is simplified as if all chunks were whole",
    "Scan-skip some backward": "what is skipped has no chunk",
    "SubmodelOp-nested": "a model inside gives one result alone",
    "SubmodelOp-its own symbols": "a model inside gives one result alone",
}
OTHERWISE = {
    "GridSample-cubic-border": "a cubic reads no neighbours behind the border",
    "Resize-u8": "integers are cut off and wrap around",
    "Topk-nan": "what is not a number is the smallest",
    "Resize-cubic-pytorch_half_pixel--0.75-False-(0.6, 0.25)": "an output of one element is placed otherwise",
    "Scan-no iteration": "the last value of a loop without iterations has no elements",
    "Scan-skip all": "the last value of a loop without iterations has no elements",
}
ANYHOW = {
    "GridSample": "coordinates that are no numbers, or far outside, end the process, or are no numbers in the result"
}
"""Operators whose cases at the ends of a type are refused there or computed otherwise."""

RUBBISH = {
    "Scan-last chunk is short": "what a short chunk lacks is memory as it was",
    "Scan-skip some": "what is skipped is memory as it was",
}
NOT_BACK = {
    "Scan": "names of results collide in what it writes",
    "SubmodelOp": "of several inputs it writes the first",
    "InnerDimToComplex": "complex numbers are compiled out",
}


def reason(case: Case, table: dict[str, str]) -> str | None:
    """Why a case is in a table: where several names of the tables begin its own, the longest counts."""
    names = [name for other in (REFUSED, OTHERWISE, RUBBISH) for name in other if case.name.startswith(name)]
    return table.get(max(names, key=len, default=""))


def cases() -> list[Case]:
    table = default_registry()[CASES]
    found = [case for family in FAMILIES for case in table.find(family) or ()]
    return [case for case in found if not any(kind in str(arg.fact) for arg in case.args for kind in UNKNOWN_TYPES)]


def written(case: Case, folder: Path) -> Path:
    """The case as an archive. Skipped where the registries of that engine cannot say it."""
    for symbolic in (False, True):
        with suppress(tract.errors.Unsupported):
            WRITER.write(case.model(symbolic=symbolic), folder / "m.tar")
            return folder / "m.tar"
    pytest.skip("tract_py says it")


def compare(case: Case, found: list[np.ndarray]) -> None:
    for one, wanted in zip(found, case.outputs(), strict=True):
        assert one.shape == wanted.shape
        near = 2e-3 if one.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(one.astype(wanted.dtype), wanted, rtol=near, atol=near)


@interchange
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_case_means_the_same_there(case, tmp_path) -> None:
    archive = written(case, tmp_path)
    if "-ends-" in case.name and type(case.op).__name__ in ANYHOW:
        with suppress(Refused, AssertionError):
            compare(case, established.run(archive, case.given()))
    elif reason(case, RUBBISH):
        established.run(archive, case.given())
    elif reason(case, REFUSED):
        with suppress(Refused):  # some of these cases are without what it refuses
            compare(case, established.run(archive, case.given()))
    elif reason(case, OTHERWISE):
        with pytest.raises(AssertionError):
            compare(case, established.run(archive, case.given()))
    else:
        compare(case, established.run(archive, case.given()))


def one_of_each() -> list[Case]:
    """One case for each operator and element type."""
    there = [case for case in cases() if type(case.op).__name__ not in NOT_BACK]
    return list({(type(case.op), str(case.args[0].fact).split(",")[-1]): case for case in there}.values())


@interchange
@pytest.mark.parametrize("case", one_of_each(), ids=str)
def test_what_is_written_there_means_the_same_here(case, tmp_path) -> None:
    established.write(written(case, tmp_path), tmp_path / "theirs.tar")
    found = run(tract.load(tmp_path / "theirs.tar"), *case.given())
    compare(case, found if isinstance(found, list) else [found])
