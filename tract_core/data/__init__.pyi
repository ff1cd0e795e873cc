"""The public names, and where they are from."""

from tract_core.data.constant import Constant as Constant
from tract_core.data.constant import SymbolicArray as SymbolicArray
from tract_core.data.constant import Value as Value
from tract_core.data.constant import value_of as value_of
from tract_core.data.containers import Container as Container
from tract_core.data.containers import DType as DType
from tract_core.data.containers import ItemFact as ItemFact
from tract_core.data.containers import MapType as MapType
from tract_core.data.containers import OptionalType as OptionalType
from tract_core.data.containers import SequenceType as SequenceType
from tract_core.data.containers import parse_dtype as parse_dtype
from tract_core.data.datum_type import DatumType as DatumType
from tract_core.data.datum_type import QuantizedType as QuantizedType
from tract_core.data.datum_type import widened as widened
