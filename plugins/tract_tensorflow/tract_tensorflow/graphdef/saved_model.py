"""SavedModels: a folder with graphs for several ways of use, their signatures, and a checkpoint of the variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError

from tract_core.errors import CorruptModel, InputError, LimitExceeded, Unsupported, meant
from tract_core.frontend.external import ExternalFiles
from tract_core.limits import LoadLimits
from tract_core.model.fact import InferenceFact
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.checkpoint import Checkpoint
from tract_tensorflow.graphdef.protos import CLASSES, Message
from tract_tensorflow.graphdef.references import Reference, in_graph
from tract_tensorflow.graphdef.tensors import fact_of
from tract_tensorflow.graphdef.variables import keys_of_variables

ENTRY: Final = "saved_model.pb"
"""The file that makes a folder a SavedModel."""

VARIABLES: Final = "variables/variables"
"""What the files of the checkpoint begin with."""

USUAL: Final = "serving_default"
"""The signature that is taken unasked."""

ASSETS: Final = "assets"
_OLD_ASSETS: Final = "saved_model_assets"
"""Under which name TensorFlow 1 has the assets of a graph."""

_SERVE: Final = "serve"
INIT: Final = "__saved_model_init_op"
"""The signature that stands for what fills tables."""


def graph_to_serve(model: Message) -> Message:
    """The graph for inference. Raises CorruptModel, or Unsupported where there are only others."""
    if not model.meta_graphs:
        raise CorruptModel("there is no graph in it")
    serving = [one for one in model.meta_graphs if _SERVE in one.meta_info_def.tags]
    if serving:
        return serving[0]
    if len(model.meta_graphs) == 1:
        return model.meta_graphs[0]
    tags = "; ".join(", ".join(one.meta_info_def.tags) for one in model.meta_graphs)[:200]
    raise Unsupported(f"its graphs have the tags {tags}; one with the tag {_SERVE!r} is wanted")


def signature_of(meta: Message, name: str) -> Message:
    """The signature of that name; the usual one, or the only one, where no name is given. Raises InputError."""
    there = sorted(one for one in meta.signature_def if one != INIT and meta.signature_def[one].outputs)
    wanted = name or (USUAL if USUAL in there else there[0] if len(there) == 1 else "")
    if wanted in there:
        return meta.signature_def[wanted]
    listed = ", ".join(repr(one[:80]) for one in there[:20]) or "none"
    problem = f"it has no signature {wanted[:80]!r}" if wanted else "none of its signatures is the usual one"
    near = meant(wanted, there) if wanted else []
    hint = f"did you mean {near[0]!r}?" if near else "choose one with signature=..., or --tensorflow-signature NAME"
    if not there:
        hint = "save it with signatures: tf.saved_model.save(model, folder, signatures=...), or model.export(folder)"
    raise InputError(f"{problem}; it has {listed}", hint=hint)


def tensors_of(infos: Mapping[str, Message], places: Mapping[str, int]) -> dict[str, Reference]:
    """The tensors of one side of a signature by their names there, in the order of the graph.

    ``places``: where each node stands in the graph. Raises ModelError.
    """
    found: dict[str, Reference] = {}
    for name in infos:
        if not infos[name].name:
            raise Unsupported(f"{name[:80]!r} of the signature is no dense tensor")
        found[name] = in_graph(infos[name].name)
        if found[name][0] not in places:
            raise CorruptModel(f"{name[:80]!r} of the signature is {infos[name].name[:200]!r}, which no node computes")
    return dict(sorted(found.items(), key=lambda item: (places[item[1][0]], item[1][1], item[0])))


def fact_of_info(info: Message) -> InferenceFact:
    """What a signature says of a tensor. Raises ModelError."""
    return fact_of(info.dtype, info.tensor_shape if info.HasField("tensor_shape") else None)


def assets_of(meta: Message) -> dict[str, str]:
    """The file that each node stands for that is one of the assets, by the node's name. Raises CorruptModel."""
    assets = list(meta.asset_file_def)
    if _OLD_ASSETS in meta.collection_def:
        for one in meta.collection_def[_OLD_ASSETS].any_list.value:
            assets.append(CLASSES["AssetFileDef"]())
            try:
                assets[-1].ParseFromString(one.value)
            except (DecodeError, ValueError) as error:
                raise CorruptModel(f"one of its assets cannot be read: {error}") from None
    return {in_graph(one.tensor_info.name)[0]: one.filename for one in assets}


def assets_beside(entry: Path | None, limits: LoadLimits) -> Callable[[str], bytes] | None:
    """What gives the content of an asset: it raises ModelError. ``entry``: the path of the model's file."""
    if entry is None:
        return None
    files = ExternalFiles(entry, limits)

    def read(name: str) -> bytes:
        content = files.open(f"{ASSETS}/{name}")
        if len(content) > limits.max_parsed_bytes:
            raise LimitExceeded(
                f"the file {name[:80]!r} has {len(content)} bytes, {limits.max_parsed_bytes} are allowed",
                hint="a model that needs so many can be loaded with LoadLimits(max_parsed_bytes=...)",
            )
        return bytes(content)

    return read


def variables_of(meta: Message, entry: Path | None, limits: LoadLimits) -> Mapping[str, Callable[[], Array]]:
    """What reads each variable, by the name of its handle. ``entry``: the path of the model's file.

    Raises ModelError when the checkpoint cannot be read, where there is one.
    """
    if entry is None or not (entry.parent / f"{VARIABLES}.index").exists():
        return {}
    checkpoint = Checkpoint(entry, VARIABLES, limits)
    found: dict[str, Callable[[], Array]] = {}
    for node in meta.graph_def.node:
        if node.op in ("VarHandleOp", "VariableV2", "Variable"):
            shared = node.attr["shared_name"].s.decode(errors="replace") if "shared_name" in node.attr else ""
            for name in {node.name, shared} - {""}:
                key = checkpoint.key_of(name)
                if key is not None:
                    found[name] = partial(checkpoint.tensor, key)
    for name, (key, part) in keys_of_variables(meta.graph_def).items():
        found[name] = partial(checkpoint.tensor, key, part)
    return found
