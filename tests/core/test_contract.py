"""The conformance kit, on every runtime that is installed: the contract of runtimes."""

# ruff: noqa: F403 - every test of the kit is meant, the next one too
from __future__ import annotations

from tract_core.testing.conformance.test_contract import *
from tract_core.testing.conformance.test_contract_arrays import *
from tract_core.testing.conformance.test_contract_limits import *
from tract_core.testing.conformance.test_contract_nodes import *
from tract_core.testing.conformance.test_contract_options import *
from tract_core.testing.conformance.test_contract_parts import *
from tract_core.testing.conformance.test_contract_states import *
