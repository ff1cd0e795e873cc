"""Write the index of the rows of plugins: ``python -m tract_core.plugins.write_index my_plugin.plugin ...``.

Each of these modules has the hooks of a plugin. Where it has a function ``row_modules``, its modules with rows by
table, its index goes into the file ``rows.json`` beside it, which `tract_core.plugins.index` reads. The others are
there for their tables, which these may have rows for.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tract_core.plugins.index import FILE, Index
from tract_core.plugins.references import load_object
from tract_core.plugins.tables import Rows, TableKey, key_text


def make_index(modules: Mapping[str, Iterable[str]], tables: Mapping[str, str]) -> Index:
    """The index of modules with rows, by table, which are imported. One without rows for a table is left out there.

    ``tables``: where the tables are, as the hook ``tract_tables`` says it.
    """
    keys = {name: load_object(tables[name]) for name in modules}
    found = {name: {module: _keys(keys[name], module) for module in listed} for name, listed in modules.items()}
    return {name: {module: rows for module, rows in by_module.items() if rows} for name, by_module in found.items()}


def _keys(table: TableKey[Any, Any], module: str) -> list[str] | dict[str, list[str]]:
    rows: Rows = importlib.import_module(module).ROWS
    mine = [row for row in rows if row.table == table.name]
    if table.types is None:
        return [row.key for row in mine]
    return {row.key: sorted(map(key_text, table.types(row.value))) for row in mine}


def index_text(plugin: str, beside: Sequence[str] = ()) -> str:
    """What is to be in the index of a plugin, by the name of its module.

    ``beside``: other plugins, whose tables it may have rows for.
    """
    found = [importlib.import_module(name) for name in (plugin, *beside)]
    tables = {name: place for one in found for name, place in one.tract_tables().items()}
    return json.dumps(make_index(found[0].row_modules(), tables), indent=1) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if not hasattr(importlib.import_module(name), "row_modules"):
            continue
        file = Path(importlib.import_module(name).__file__ or "").with_name(FILE)
        file.write_text(index_text(name, sys.argv[1:]), encoding="utf-8")
