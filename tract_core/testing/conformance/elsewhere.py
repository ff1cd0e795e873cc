"""Another process that goes on with a frozen state: it reads the state from standard input, runs, writes the outputs.

``python -m tract_core.testing.conformance.elsewhere``, as `test_contract_states` calls it.
"""

from __future__ import annotations

import pickle
import sys

from tract_core.api.runtime import runtime_for_name
from tract_core.plugins import default_registry
from tract_core.plugins.references import load_object
from tract_core.testing.conformance.models import running_sums


def main() -> None:
    """Two pickles come in: where Python finds modules, then the registry, the runtime, the state and the inputs."""
    sys.path[:] = pickle.load(sys.stdin.buffer)
    reference, (name, options), frozen, inputs = pickle.load(sys.stdin.buffer)
    registry = load_object(reference)() if reference else default_registry()
    state = runtime_for_name(name, registry, **options).backend.prepare(running_sums(registry)).spawn()
    state.thaw(frozen)
    sys.stdout.buffer.write(pickle.dumps(state.run(inputs)))


if __name__ == "__main__":
    main()
