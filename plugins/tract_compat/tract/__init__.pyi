"""The public names of `tract_core`, and what type checkers are told of the formats, which come from distributions."""

from tract_nnef.handle import Nnef as Nnef
from tract_onnx.handle import Onnx as Onnx

from tract_core import *
from tract_core import __getattr__ as __getattr__

__version__: str

def onnx() -> Onnx:
    """A loader of ONNX files."""

def nnef() -> Nnef:
    """A loader and writer of NNEF archives."""
