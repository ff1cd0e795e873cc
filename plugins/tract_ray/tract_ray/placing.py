"""Models that come as bytes, as out of Ray's object store, and lie in a file once a node.

All processes of a node map that file, so the weights are in memory once, and find the plan that the first of them kept,
as they would of any other file. It is in a folder that nobody but its user can write to.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tract_core.digests import blake2b
from tract_core.frozen import frozen
from tract_core.trusted_files import trusted_folder

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


@frozen
class PlacedModel:
    """A model in Ray's object store, as `tract_ray.put` places it.

    ``name``: that of its file; ``digest``: of its content; ``content``: bytes, an array of uint8 that processes of a
    node read in one place.
    """

    name: str
    digest: str
    content: Array


def digest_of_content(content: Any) -> str:
    """A hash of bytes, or of an array of them."""
    return blake2b(content, digest_size=20).hexdigest()


def path_on_this_node(model: PlacedModel) -> Path:
    """The file of a model, which is written where this is the first process of the node that asks for it.

    Raises Distrusted where somebody else can write there, OSError where nothing can be written.
    """
    name = f"{model.digest[:24]}-{os.path.basename(model.name)}"
    with trusted_folder(folder_of_this_user(), make=True) as folder:
        try:
            with folder.file(name) as (_, status):
                is_there = status.st_size == model.content.size
        except FileNotFoundError:
            is_there = False
        if not is_there:
            folder.write(name, [model.content.data])
        return Path(folder.path) / name


def folder_of_this_user() -> Path:
    """Where models lie: in the folder for temporary files."""
    user = "user" if sys.platform == "win32" else os.getuid()
    return Path(tempfile.gettempdir()) / f"tract-ray-{user}"
