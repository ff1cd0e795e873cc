"""Write a model as an archive, and read it again: what others will load is what runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from tract_core.model.typed import TypedModel
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter


@dataclass(frozen=True, slots=True)
class NnefCycle:
    """Write the model as an archive and read it again. The fields are those of the command's flags of these names."""

    name: ClassVar[str] = "nnef_cycle"
    tract_core: bool = False
    no_tract_core: bool = False
    no_tract_py: bool = False
    tract_resource: bool = False
    tract_onnx: bool = False
    tract_pulse: bool = False
    tract_extra: bool = False
    tract_transformers: bool = False
    registry: str = ""
    opl: bool = False
    extended_identifier_syntax: bool = False
    extern_all_constants: bool = False

    def apply(self, model: TypedModel) -> TypedModel:
        """The model that the archive is read as. Raises Unsupported, naming the node that cannot be written."""
        content = NnefWriter(**asdict(self)).to_tar(model)
        return NnefLoader(limits=model.limits, registry=model.registry).load_bytes(content)
