"""Folders of ``onnxruntime-genai`` where commands are given a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tract_transformers.generation.genai import genai_folder, inference_genai, read_genai

if TYPE_CHECKING:
    from tract_core.cli.request import Request

FORMAT: Final = "onnx"


def with_folder(request: Request) -> Request:
    """The same request, for the file in the folder that MODEL is, if it is one of that kind.

    Caches grow, and inputs are what the folder says, but for those that ``-i`` names. Raises TractError.
    """
    folder = None if request.model is None else genai_folder(Path(request.model))
    if folder is None:
        return request
    from tract_core.cli.formats import FormatFlag

    model = inference_genai(folder)
    said = tuple(f"{name}:{model.input_fact(name)}" for name in model.input_names())
    flags = {FormatFlag(FORMAT, name, "", ""): True for name in ("growing_caches", "ignore_value_info")}
    return replace(
        request,
        model=str(read_genai(folder).file),
        inputs=(*said, *request.inputs),
        of_format={**request.of_format, **flags},
    )
