"""The public names, and where they are from."""

from tract_inferers.batcher import Batched as Batched
from tract_inferers.batcher import Batcher as Batcher
from tract_inferers.errors import BrainsFailed as BrainsFailed
from tract_inferers.errors import IncompatibleInferer as IncompatibleInferer
from tract_inferers.errors import OrphanedData as OrphanedData
from tract_inferers.errors import UnknownBrain as UnknownBrain
from tract_inferers.ext import InfererExt as InfererExt
from tract_inferers.inferer import Inferer as Inferer
from tract_inferers.inferers.dynamic import DynamicInferer as DynamicInferer
from tract_inferers.responses import Response as Response
from tract_inferers.responses import Responses as Responses
from tract_inferers.responses import State as State
from tract_inferers.runtime.brain import BrainId as BrainId
from tract_inferers.runtime.brain import BrainStats as BrainStats
from tract_inferers.runtime.runtime import Runtime as Runtime
from tract_inferers.scratch import ScratchPad as ScratchPad
from tract_inferers.scratch import ScratchPadView as ScratchPadView
from tract_inferers.slots import Slot as Slot
from tract_inferers.snapshot import AgentSnapshot as AgentSnapshot
from tract_inferers.stateful import BaseWrapper as BaseWrapper
from tract_inferers.stateful import StatefulInferer as StatefulInferer
from tract_inferers.wrapper import InfererWrapper as InfererWrapper
from tract_inferers.wrapper import InfererWrapperExt as InfererWrapperExt
