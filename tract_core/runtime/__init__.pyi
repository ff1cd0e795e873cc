"""The public names, and where they are from."""

from tract_core.api.runtime import Runtime as Runtime
from tract_core.api.runtime import runtime_for_name as runtime_for_name
