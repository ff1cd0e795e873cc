"""The public names, and where they are from."""

from tract_core.plugins.default import default_registry as default_registry
from tract_core.plugins.default import refresh as refresh
from tract_core.plugins.descriptor import Failure as Failure
from tract_core.plugins.descriptor import Format as Format
from tract_core.plugins.descriptor import PluginRecord as PluginRecord
from tract_core.plugins.descriptor import PluginState as PluginState
from tract_core.plugins.hookspecs import API_VERSION as API_VERSION
from tract_core.plugins.hookspecs import hookimpl as hookimpl
from tract_core.plugins.registry import PluginWarning as PluginWarning
from tract_core.plugins.registry import Registry as Registry
from tract_core.plugins.tables import Row as Row
from tract_core.plugins.tables import Rows as Rows
from tract_core.plugins.tables import Table as Table
from tract_core.plugins.tables import TableKey as TableKey
