"""Write files of lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.saving import whole_file
from tract_lines.words import WORDS


class Writer:
    """The format. ``comment``: a text for the first line."""

    def __init__(self, comment: str = "") -> None:
        self._comment = comment

    def write(self, model: TypedModel, path: Path) -> None:
        """Write a model, or raise and leave what was there. Raises Unsupported for nodes that the format has not."""
        text = self.text(model)
        with whole_file(path) as file:
            file.write(text.encode())

    def text(self, model: TypedModel) -> str:
        """The content of a file with the model. Raises Unsupported."""
        comment = [f"# {line}" for line in self._comment.splitlines()]
        return "\n".join([*comment, *_lines(model)]) + "\n"


def _lines(model: TypedModel) -> Iterator[str]:
    if any(True for _ in model.symbols):
        raise Unsupported("the format has no word for what is assumed of sizes")
    for outlet in model.inputs:
        yield f"input {_name(model, outlet)}: {model.outlet_fact(outlet)}"
    for node in (model.nodes[place] for place in model.eval_order()):
        if isinstance(node.op, TypedSource):
            continue
        if node.op not in WORDS:
            raise Unsupported("the format has no word for it", where=f"node {node.name!r} ({node.op.name})")
        read = " ".join(_name(model, outlet) for outlet in node.inputs)
        yield f"{_name(model, OutletId(node.id))} = {WORDS[node.op]} {read}"
    yield f"output {' '.join(_name(model, outlet) for outlet in model.outputs)}"


def _name(model: TypedModel, outlet: OutletId) -> str:
    name = model.outlet_name(outlet)
    if not name.isidentifier():
        raise Unsupported(f"the format takes no names like {name!r}", hint="names are letters, digits and _")
    return name
