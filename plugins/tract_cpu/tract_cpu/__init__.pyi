"""The public names, and where they are from."""

from tract_cpu.archived import ArchivedModel as ArchivedModel
from tract_cpu.archived import Compiled as Compiled
from tract_cpu.archived import CompiledCode as CompiledCode
from tract_cpu.archived import compiled_in as compiled_in
from tract_cpu.archived import load_compiled as load_compiled
