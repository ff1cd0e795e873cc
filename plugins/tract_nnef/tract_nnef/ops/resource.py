"""Values that lie beside the model."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.reading.values import Value
from tract_nnef.registry import RESOURCE, reads

ROWS = Rows()


@reads(ROWS, RESOURCE, "tract_resource_get(label: string, key: string) -> (value: ?[])")
def read_resource_get(call: Call) -> Value:
    """What the JSON file of that label has at a path such as ``$.a.b[0]``."""
    return call.reader.tensors.resource(call.text("label"), call.text("key"))
