"""Small models of texts for servers in tests: the network of the tests of tract-transformers."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_transformers" / "tests"))

from model_files import gguf_with_model

CONTEXT = 4096

TEMPLATE = (
    "{% if tools %}<|start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    "Write <tool_call> to call one.<|end|>\n{% endif %}"
    "{% for m in messages %}{% if m.role not in ['user', 'assistant', 'system', 'tool'] %}"
    "{{ raise_exception('no ' + m.role) }}{% endif %}<|start|>{{ m.role }}\n{{ m.content }}"
    "{% for call in m.tool_calls or [] %}<tool_call>{{ call.function.arguments.city }}{% endfor %}<|end|>\n{% endfor %}"
    "<|start|>assistant\n{% if think %}{{ think }}{% endif %}"
)

BARE = TEMPLATE.replace("<tool_call>", "a call: ")
"""Of a model that writes calls as JSON alone."""

PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}"
"""Without functions."""


def put_text(folder: Path, name: str, template: str = TEMPLATE, config: str | None = None) -> Path:
    """Write the model that writes into a repository; return its file."""
    place = folder / name / "1"
    place.mkdir(parents=True)
    if config is not None:
        (folder / name / "config.pbtxt").write_text(config)
    return gguf_with_model(place / "model.gguf", template=template, context=CONTEXT)


def parameters(**given: Any) -> str:
    """A configuration with some parameters."""
    return "\n".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}' for name, value in given.items()
    )


@cache
def loaded(path: Path) -> Any:
    """The model of a file as the server has it, to write with by itself."""
    import tract_transformers

    return tract_transformers.load(path, "cpu", bytes=True, cache="f16")
