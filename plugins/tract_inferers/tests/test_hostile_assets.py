"""Damaged assets: whatever is wrong with one, what is raised is one of our errors, which says where and what to do."""

from __future__ import annotations

from pathlib import Path

import asset_models as models
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tract_inferers import AssetData, AssetKind

import tract_core as tract
from tract_core.errors import ModelError
from tract_core.limits import LoadLimits

LIMITS = LoadLimits(max_nodes=10_000, max_tensor_bytes=1 << 26, max_fold_bytes=1 << 26, deadline_s=5)
WHOLE = [AssetData(AssetKind.ONNX, models.onnx_policy()), AssetData(AssetKind.NNEF, models.old_archive())]
WHOLE += [AssetData(AssetKind.ONNX, models.trees_policy()), WHOLE[0].to_nnef()]
CONTENTS = [asset.serialize() for asset in WHOLE]

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
contents = st.sampled_from(CONTENTS)


def outcome(content: bytes) -> str:
    """What becomes of an asset; asserts that an error says where, and what to do."""
    try:
        AssetData.deserialize(content, limits=LIMITS).load_model()
    except ModelError as error:
        refusal = error
    else:
        return "loaded"
    assert str(refusal).startswith("asset: ")
    assert refusal.hint
    return "refused"


def test_what_is_whole_loads() -> None:
    assert {outcome(content) for content in CONTENTS} == {"loaded"}


@quick
@given(contents, st.binary(min_size=8, max_size=8))
def test_any_header(content: bytes, header: bytes) -> None:
    right = header[:7] == b"CRVO\0\0\0" and header[7] in (1, 2)
    assert (outcome(header + content[8:]) == "loaded") <= right


@quick
@given(contents, st.integers(0, 7), st.integers(0, 255))
def test_one_byte_of_the_header(content: bytes, place: int, byte: int) -> None:
    """Only the right one loads: also with the kind of the other, the model is none."""
    damaged = content[:place] + bytes([byte]) + content[place + 1 :]
    assert outcome(damaged) == ("loaded" if damaged == content else "refused")


@quick
@given(contents, st.floats(0, 1, exclude_max=True))
def test_any_beginning(content: bytes, share: float) -> None:
    outcome(content[: int(len(content) * share)])


@quick
@given(st.sampled_from(AssetKind), st.binary(max_size=2000))
def test_any_payload(kind: AssetKind, payload: bytes) -> None:
    outcome(AssetData(kind, payload).serialize())


@quick
@given(contents, st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=5))
def test_any_bytes_within(content: bytes, changes: list[tuple[float, int]]) -> None:
    damaged = bytearray(content)
    for share, byte in changes:
        damaged[8 + int((len(content) - 8) * share)] = byte
    outcome(bytes(damaged))


@pytest.mark.parametrize(
    "content", [*CONTENTS, b"", b"CRVO", b"CRVO\0\0\0\1" + b"\xff" * 50, b"CRVO\0\0\0\2" + bytes(9)]
)
@pytest.mark.parametrize("wrong", ["nothing", "cut", "kind", "zeros"])
def test_a_file_is_named_by_all_that_read_it(content: bytes, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.crvo"
    path.write_bytes(
        {
            "nothing": content,
            "cut": content[: len(content) // 2],
            "kind": content[:7] + bytes([3 - content[7] if len(content) > 7 and content[7] < 3 else 9]) + content[8:],
            "zeros": content[:8] + bytes(len(content)),
        }[wrong]
    )
    if wrong == "nothing" and content in CONTENTS:
        tract.load(path, limits=LIMITS)
        return
    for load in (lambda: tract.load(path, limits=LIMITS), lambda: AssetData.load(path, limits=LIMITS).load_dynamic()):
        with pytest.raises(ModelError, match=r"policy\.crvo: ") as caught:
            load()
        assert caught.value.hint
