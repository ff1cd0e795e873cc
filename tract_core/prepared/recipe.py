"""How a model was made, step by step: what it is kept under when it is prepared, and found under by another process.

A process that loads a file, says of which shape an input is, and prepares the model asks at each step whether another
one has gone as far and ended with a prepared model. As long as that is so it does nothing: the model is made when
somebody looks at it, and with luck nobody does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from tract_core.cache.cache import cache_here
from tract_core.digests import digest_of
from tract_core.frozen import frozen, replaced
from tract_core.limits import LoadLimits
from tract_core.prepared.environment import Environment, digest_of_file, environment
from tract_core.prepared.records import found_in, written

_PLAIN: Final = (str, int, float, type(None), LoadLimits)
"""What a step may be made with: values that are equal where they look equal."""


@frozen
class Told:
    """What a step gave. ``value``: what is said of it; ``None`` for nothing but that it went well."""

    value: Any = None


@frozen
class Recipe:
    """How something was made. ``digest``: a hash of the file and of all steps since.

    ``told``: what these steps gave, by their digests, for whoever comes as far; it is kept with the plan.
    """

    environment: Environment
    digest: str
    told: tuple[tuple[str, Told], ...] = ()

    def then(self, *step: object) -> Recipe | None:
        """The recipe with one more step: what was done, and with which values; ``None`` where these cannot be told."""
        if not all(isinstance(one, _PLAIN) for one in step):
            return None
        return replaced(self, digest=digest_of(self.digest, repr(step)))

    def telling(self, value: Any = None) -> Recipe:
        """The recipe, which has come as far as this. ``value``: what is said of what it gave."""
        return replaced(self, told=(*self.told, (self.digest, Told(value))))

    def found(self) -> Told | None:
        """What another process found who came as far as this, and kept a plan in the end."""
        found = found_in(cache_here(), self.environment.key(self.digest))
        return found if isinstance(found, Told) else None

    def keep(self, value: Any) -> None:
        """Keep a plan, and what the steps to it gave, if they can be pickled, and there is room for them."""
        keys = [(self.environment.key(digest), told) for digest, told in (*self.told, (self.digest, Told(value)))]
        try:
            files = [(key, written(key.file, told)) for key, told in keys]
        except Exception:  # operators of others may hold anything; then the model is prepared again, as before
            return
        for key, parts in reversed(files):  # who finds the first step finds the others too
            if not cache_here().put_parts(key, parts):
                return


def recipe_of_file(path: str | os.PathLike[str], format_name: str | None, options: Mapping[str, Any]) -> Recipe | None:
    """That of a model in a file. ``None`` where nothing is kept, as of one that was just written, or is too large.

    ``format_name``: where the name of the file does not tell it; ``options``: of the loader.
    """
    here = environment()
    try:
        fits = here is not None and os.path.isfile(path) and os.stat(path).st_size <= cache_here().largest
        content = digest_of_file(path) if fits else None
    except OSError:  # the loader has more to say about it
        return None
    if here is None or content is None:
        return None
    given = [f"{name}={value!r}" for name, value in sorted(options.items()) if isinstance(value, _PLAIN)]
    if len(given) < len(options):
        return None
    return Recipe(here, digest_of("load", content, os.path.basename(path), repr(format_name), *given))
