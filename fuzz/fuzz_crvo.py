"""Feed damaged assets to their reader: only typed errors, with the name of the asset, or models may come of them.

    python fuzz/fuzz_crvo.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are assets that hold ONNX files and archives. Headers are changed, kinds exchanged, models damaged as `fuzz_onnx`
and `fuzz_nnef_archive` damage them. A *finding* is what `driver` says, and an error without the name or without a hint.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import fuzz_nnef_archive
import onnx
from driver import Finding, Target, look_for_mistake, main, place_of
from mutations import mutated as onnx_mutated
from onnx import TensorProto, helper

HEADERS = (b"CRVO\0\0\0\x01", b"CRVO\0\0\0\x02")
LIMIT = 64 << 20


def seeds():
    from tract_inferers import AssetData, AssetKind

    value = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["obs", "w"], ["product"]), helper.make_node("Softmax", ["product"], ["act"])]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1.0, 2, 3, 4, 5, 6])
    ends = [value("obs", TensorProto.FLOAT, ["N", 3])], [value("act", TensorProto.FLOAT, ["N", 2])]
    model = helper.make_model(helper.make_graph(nodes, "policy", *ends, [weights]), ir_version=8)
    model.opset_import[0].version = 17
    asset = AssetData(AssetKind.ONNX, model.SerializeToString())
    return [asset.serialize(), asset.to_nnef().serialize()]


def mutated(contents, chance):
    content = chance.choice(contents)
    header, payload = bytearray(content[:8]), content[8:]
    if chance.random() < 0.8:
        is_onnx = header == HEADERS[0]
        parsed = [onnx.ModelProto.FromString(payload)] if is_onnx else [payload]
        payload = onnx_mutated(parsed, chance) if is_onnx else fuzz_nnef_archive.mutated(parsed, chance)
    if chance.random() < 0.2:
        header[chance.randrange(8)] = chance.choice((0, 1, 2, 3, 255, chance.randrange(256)))
    content = bytearray(bytes(header) + payload)
    if chance.random() < 0.1:
        fuzz_nnef_archive.cut(content, chance)
    return bytes(content)


def examine(content, chance):
    """``"loaded"`` or ``"refused"``."""
    from tract_inferers import AssetData

    from tract_core.errors import TractError
    from tract_core.limits import LoadLimits

    limits = LoadLimits(max_nodes=10_000, deadline_s=5, max_fold_bytes=LIMIT, max_tensor_bytes=LIMIT)
    try:
        AssetData.deserialize(content, limits=limits).load_model()
    except TractError as error:
        look_for_mistake(error)
        if not error.hint or not str(error).startswith("asset: "):
            raise Finding(f"no hint, or no name: {place_of(error)}") from error
        return "refused"
    return "loaded"


if __name__ == "__main__":
    sys.exit(main(Target(__file__, ".crvo", seeds, mutated, examine), __doc__))
