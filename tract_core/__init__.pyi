"""The public names, and where they are from."""

from typing import TYPE_CHECKING, Any

from tract_core import errors as errors
from tract_core import limits as limits
from tract_core.api.dim import Dim as Dim
from tract_core.api.fact import Fact as Fact
from tract_core.api.fact import InferenceFact as InferenceFact
from tract_core.api.feeding import Feeding as Feeding
from tract_core.api.feeding import FrozenFeeding as FrozenFeeding
from tract_core.api.inference_model import InferenceModel as InferenceModel
from tract_core.api.loading import load as load
from tract_core.api.loading import load_bytes as load_bytes
from tract_core.api.model import Model as Model
from tract_core.api.runnable import Runnable as Runnable
from tract_core.api.runtime import Runtime as Runtime
from tract_core.api.runtime import runtime_for_name as runtime_for_name
from tract_core.api.specs import FloatPrecision as FloatPrecision
from tract_core.api.specs import Pulse as Pulse
from tract_core.api.specs import SetSymbols as SetSymbols
from tract_core.api.specs import TransformSpec as TransformSpec
from tract_core.api.state import FrozenState as FrozenState
from tract_core.api.state import State as State
from tract_core.api.tensor import Tensor as Tensor
from tract_core.data import DatumType as DatumType
from tract_core.errors import TractError as TractError
from tract_core.version import version as version

if TYPE_CHECKING:  # what distributions of this project bring; unknown to a checker where they are not installed
    from tract_nnef.handle import Nnef as Nnef
    from tract_onnx.handle import Onnx as Onnx

    from tract_core.api.loading import Loader

    def onnx() -> Onnx:
        """A loader of ONNX files."""

    def nnef() -> Nnef:
        """A loader and writer of NNEF archives."""

    def crvo() -> Loader:
        """A loader of policies as assets."""

    def pt2() -> Loader:
        """A loader of exported programs of PyTorch."""

__version__: str

def __getattr__(name: str) -> Any:  # pyright: ignore[reportIncompleteStub]: which names there are depends on plugins
    """What formats of others bring."""
