"""What an answer has to look like, as a schema of JSON or a grammar: by ``response_format``, or for calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from tract_core.frozen import frozen
from tract_serve.chat.families import HERMES, HERMES_END, Family
from tract_serve.chat.fields import Fields, checked, shallow
from tract_serve.chat.tools import Tool, Tools

MOST_CALLS: Final = 16
"""Calls in one answer that is forced to have some."""

_OBJECT: Final = {"type": "object"}


@frozen
class Form:
    """``wishes``: ``schema`` or ``grammar``, as `TextModel.generate` takes them. ``param``: the parameter that asks."""

    wishes: Mapping[str, Any]
    param: str


def schema_of(asked: Fields) -> Any:
    """The schema that ``response_format`` asks for; ``None`` for any text. Raises WrongParameter."""
    told = asked.object("response_format")
    if told is None:
        return None
    kind = told.one_of("type", ("text", "json_object", "json_schema"))
    if kind != "json_schema":
        return None if kind == "text" else _OBJECT
    inside = told.object("json_schema")
    if inside is None:
        raise told.wrong("json_schema", "is missing, wanted an object")
    schema = inside.get("schema")
    param = inside.param("schema")
    return _OBJECT if schema is None else shallow(checked(schema, dict, param), param)


def form_of(schema: Any, tools: Tools, family: Family) -> Form | None:
    """What an answer has to look like, if anything. ``schema``: of ``response_format``, or ``None``."""
    if tools.forced:
        return Form(_calls(tools.forced, family, several=tools.several), "tools")
    if schema is None:
        return None
    if not tools.known:
        return Form({"schema": schema}, "response_format")
    return Form(_calls(tools.known, family, several=tools.several, answer=schema), "response_format")


def _calls(tools: Sequence[Tool], family: Family, *, several: bool, answer: Any = None) -> dict[str, Any]:
    """The wish for some calls; or, with ``answer``, for either these or JSON of that schema."""
    call = {"anyOf": [_call(tool, number, family) for number, tool in enumerate(tools)]}
    places = {f"tool_{number}": _moved(tool.parameters, f"tool_{number}") for number, tool in enumerate(tools)}
    if family.marks == (HERMES,):
        return {"grammar": _marked({**call, "$defs": places}, several=several, answer=answer)}
    ways: list[Any] = [{"$ref": "#/$defs/call"}]
    if several and family.lists:
        ways = [
            {"type": "array", "items": ways[0], "minItems": 1, "maxItems": MOST_CALLS},
            *([] if answer is None else ways),
        ]
    places["call"] = call
    if answer is not None:
        places["answer"] = _moved(answer, "answer")
        ways.append({"$ref": "#/$defs/answer"})
    return {"schema": {**(ways[0] if len(ways) == 1 else {"anyOf": ways}), "$defs": places}}


def _call(tool: Tool, number: int, family: Family) -> Any:
    """The schema of a call: an object with the name of the function, and its arguments."""
    properties = {"name": {"const": tool.name}, family.arguments: {"$ref": f"#/$defs/tool_{number}"}}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _marked(call: Any, *, several: bool, answer: Any) -> str:
    """A grammar: calls between the marks of Hermes, each on lines of its own; or an answer without any."""
    from tract_transformers.sampling.grammar_child import SPACES

    bounded = {"x-guidance": {"whitespace_pattern": SPACES}}
    more = f' ("\\n" call){{0,{MOST_CALLS - 1}}}' if several else ""
    lines = [
        f"start: call{more}{'' if answer is None else ' | answer'}",
        f'call: "{HERMES}\\n" object "\\n{HERMES_END}"',
        f"object: %json {json.dumps(call | bounded)}",
    ]
    if answer is not None:
        lines.append(f"answer: %json {json.dumps(answer | bounded)}")
    return "\n".join(lines)


def _moved(schema: Any, name: str) -> Any:
    """A schema that stands among the definitions of another one, under a name: what refers to its root refers there."""
    if isinstance(schema, list):
        return [_moved(one, name) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = {key: _moved(one, name) for key, one in cast("dict[str, Any]", schema).items()}
    to = found.get("$ref")
    if isinstance(to, str) and to.startswith("#"):
        found["$ref"] = f"#/$defs/{name}{to[1:]}"
    return found
