"""Which rows a module has, written down in a file, so that nobody imports the module to find out.

A plugin says in its hooks which modules hold rows. With a plain list of modules, all of them are imported at the first
question to a table. With an *index*, each is imported when one of its rows is needed. It is a file of JSON,
``{table: {module: [key, ...]}}``; where keys are names of what looks at operators, as those of rules, the list is
``{key: [operator type, ...]}``. `tract_core.plugins.write_index` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

Index: TypeAlias = Mapping[str, Mapping[str, "Sequence[str] | Mapping[str, Sequence[str]]"]]
"""By table and by module, the keys of rows, in order."""

FILE: Final = "rows.json"


def read_index(plugin: str) -> Index:
    """The index beside a plugin's module, whose ``__file__`` is given."""
    return json.loads(Path(plugin).with_name(FILE).read_text(encoding="utf-8"))
