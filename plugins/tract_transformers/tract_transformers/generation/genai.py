"""Folders of ``onnxruntime-genai``: what ``genai_config.json`` says of the ONNX file beside it.

The format is that of https://onnxruntime.ai/docs/genai/reference/config.html. Caches have as many positions in these
files as their user likes, of which only some hold anything, or windows; here they grow, so that nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from tract_core.errors import CorruptModel, UnsafePath, Unsupported
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_transformers.tokenizers.from_json import settings

if TYPE_CHECKING:
    from tract_core.api.inference_model import InferenceModel
    from tract_core.api.model import Model

CONFIG: Final = "genai_config.json"
"""What says that a folder is one of this kind."""

MASK: Final = "attention_mask"

MOST_LAYERS: Final = 1 << 12
MOST_NUMBERS: Final = 1 << 20
"""The largest number of heads, and of numbers of one, that a file may speak of."""

_BEYOND: Final = ("vision", "speech", "embedding", "encoder", "encoder_decoder_init", "pipeline")
"""Parts of models that take more than tokens, or come in several files."""


@frozen
class Genai:
    """What a folder says. ``file``: the model; ``facts``: the text forms of inputs, without the element type.

    ``mask``: the input with the attention mask.
    """

    file: Path
    mask: str
    facts: Mapping[str, str]


def genai_folder(path: Path) -> Path | None:
    """The folder of such a model, which the path may be, or the file in it; ``None`` for another one."""
    folder = path if path.is_dir() else path.parent
    if not (folder / CONFIG).is_file():
        return None
    return folder if path == folder or path == read_genai(folder).file else None


def read_genai(folder: Path) -> Genai:
    """What a folder says of its model.

    Raises CorruptModel for what makes no sense, UnsafePath for a file elsewhere, Unsupported for a model of several
    parts.
    """
    where = str(folder / CONFIG)
    try:
        model = _object(settings(folder, CONFIG), "model")
        decoder = _object(model, "decoder")
        beyond = sorted({*_BEYOND} & {*model, *decoder})
        if beyond:
            raise Unsupported(f"the model has a part {beyond[0]!r}; those of one decoder are known")
        name = decoder.get("filename")
        if not isinstance(name, str) or Path(name).name != name or "\0" in name:
            raise UnsafePath(f"'filename' is {str(name)[:200]!r}, wanted the name of a file in the folder")
        return Genai(folder / name, _name(_object(decoder, "inputs"), MASK, MASK), dict(_facts(decoder)))
    except (CorruptModel, UnsafePath, Unsupported) as error:
        raise error.at(where) from None


def _facts(decoder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    inputs = _object(decoder, "inputs")
    tokens = {"input_ids": "B,S", "position_ids": "B,S", MASK: "B,P+S"}
    for role, shape in tokens.items():
        yield _name(inputs, role, role), shape
    heads, size = (_count(decoder, name, MOST_NUMBERS) for name in ("num_key_value_heads", "head_size"))
    for number in range(_count(decoder, "num_hidden_layers", MOST_LAYERS)):
        for part in ("key", "value"):
            pattern = _name(inputs, f"past_{part}_names", f"past_key_values.%d.{part}")
            yield pattern.replace("%d", str(number)), f"B,{heads},P,{size}"


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: object = given.get(name)
    if not isinstance(found, dict):
        raise CorruptModel(f"{name!r} is {str(found)[:200]}, wanted an object")
    return cast("dict[str, Any]", found)


def _name(given: Mapping[str, Any], role: str, default: str) -> str:
    found = given.get(role, default)
    if not isinstance(found, str):
        raise CorruptModel(f"{role!r} is {str(found)[:200]}, wanted a name")
    return found


def _count(given: Mapping[str, Any], name: str, most: int) -> int:
    found = given.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= most:
        raise CorruptModel(f"{name!r} is {str(found)[:200]}, wanted a number from 1 to {most}")
    return found


@frozen
class WithoutMask:
    """A model without an attention mask that nothing reads, as where caches grow: all of a text is seen then."""

    name: ClassVar[str] = "without_mask"
    mask: str

    def apply(self, model: TypedModel) -> TypedModel:
        """The model without that input, where there is such a one."""
        found = model.declutter().clone()
        read = {*found.outputs, *(one for node in found.nodes for one in node.inputs)}
        unread = [one for one in found.inputs if one not in read and found.outlet_name(one) == self.mask]
        if unread:
            found.inputs[:] = [one for one in found.inputs if one not in unread]
            found.prune()
        return found


def load_genai(folder: Path) -> Model:
    """The model in a folder, with caches that grow. Raises ModelError, as `read_genai` too, and PluginError."""
    model = inference_genai(folder).into_model()
    model.transform(WithoutMask(read_genai(folder).mask))
    return model


def inference_genai(folder: Path) -> InferenceModel:
    """The model as the file and the folder say it is, before it is typed. Raises as `load_genai` does."""
    from tract_core.api.loading import Loader

    said = read_genai(folder)
    loader = Loader("onnx")
    model = cast("InferenceModel", loader.load(said.file, ignore_value_info=True, growing_caches=True))
    for name in model.input_names():
        if name in said.facts:
            kind = str(model.input_fact(name)).rsplit(",", 1)[-1]
            model.set_input_fact(name, f"{said.facts[name]},{kind}")
    return model
