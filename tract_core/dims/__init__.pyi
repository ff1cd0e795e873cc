"""The public names, and where they are

from.
"""

from tract_core.dims.assertion import Assertion as Assertion
from tract_core.dims.assertion import parse_assertion as parse_assertion
from tract_core.dims.build import Comparison as Comparison
from tract_core.dims.build import broadcast as broadcast
from tract_core.dims.build import comparison as comparison
from tract_core.dims.build import dim_max as dim_max
from tract_core.dims.build import dim_min as dim_min
from tract_core.dims.compare import less_or_equal as less_or_equal
from tract_core.dims.compare import not_negative as not_negative
from tract_core.dims.compare import positive as positive
from tract_core.dims.compare import same_dim as same_dim
from tract_core.dims.division import ceil_div as ceil_div
from tract_core.dims.division import exact_div as exact_div
from tract_core.dims.division import product as product
from tract_core.dims.intervals import bounds as bounds
from tract_core.dims.known import Interval as Interval
from tract_core.dims.parse import parse_dim as parse_dim
from tract_core.dims.scope import SymbolScope as SymbolScope
from tract_core.dims.solve import bind as bind
from tract_core.dims.solve import linear_in_one_symbol as linear_in_one_symbol
from tract_core.dims.solve import symbol_name as symbol_name
from tract_core.dims.tdim import Dim as Dim
from tract_core.dims.tdim import TDim as TDim
from tract_core.dims.tdim import symbol as symbol
from tract_core.dims.values import complete as complete
from tract_core.dims.values import evaluate as evaluate
from tract_core.dims.values import is_one as is_one
from tract_core.dims.values import is_symbolic as is_symbolic
from tract_core.dims.values import symbols_of as symbols_of
from tract_core.dims.walk import substitute as substitute
