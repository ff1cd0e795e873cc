"""The models of a server: which are ready, and how they are loaded, replaced and left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from tract_core.errors import ModelError, TractError, meant
from tract_core.frozen import frozen
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest, Busy, Failed, NotFound
from tract_serve.kinds import made
from tract_serve.logs import log
from tract_serve.models.protocol import ServedModel
from tract_serve.models.served import Served
from tract_serve.repository.layout import FoundModel, files_in, fingerprint, found_in
from tract_serve.repository.sent import SentModels
from tract_serve.settings import Settings

State: TypeAlias = Literal["READY", "UNAVAILABLE", "LOADING"]

_LISTED: Final = 10
"""Names that an error lists."""


@frozen
class Entry:
    """A version of the model ``name``, as the repository's index says it. ``reason``: why it is not ready."""

    name: str
    version: str
    state: State
    reason: str = ""


class Repository:
    """Models by name and version. Used by the thread of one event loop.

    A model that is loaded again takes the place of the one before when it is ready; that one answers what it has, and
    is closed then. One that cannot be loaded again leaves the one before in its place.
    """

    def __init__(self, source: Path, settings: Settings) -> None:
        """``source``: a repository, or one model."""
        self._source, self._settings = source, settings
        self._ready: dict[str, dict[int, ServedModel]] = {}
        self._entries: dict[tuple[str, str], Entry] = {}
        self._prints: dict[str, tuple[object, ...]] = {}
        self._unloaded: set[str] = set()
        self._given: dict[str, ModelConfig] = {}
        self._sent = SentModels(settings)
        self._locks: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._thread = ThreadPoolExecutor(1, "tract-loading")
        self._watching: asyncio.Task[None] | None = None
        self.is_started = False

    @property
    def models(self) -> Mapping[str, Mapping[int, ServedModel]]:
        """Those that are ready, by name and version."""
        return self._ready

    @property
    def index(self) -> list[Entry]:
        """All that there are, sorted."""
        return [self._entries[key] for key in sorted(self._entries)]

    def model(self, name: str, version: str = "") -> ServedModel:
        """The model of that name, in that version, or in its latest one.

        Raises NotFound where there is none, and Busy where it is not ready, with the reason.
        """
        versions = self._ready.get(name)
        if versions:
            if not version:
                return versions[max(versions)]
            found = versions.get(int(version)) if version.isdecimal() and len(version) < 20 else None
            if found is not None:
                return found
        raise self._absent(name, version)

    def _absent(self, name: str, version: str) -> TractError:
        known = [one for one in self.index if one.name == name and version in ("", one.version)]
        if known:
            one = known[-1]
            where = f"model {name!r}, version {one.version}" if one.version else f"model {name!r}"
            return Busy(f"it is not ready ({one.state}): {one.reason or 'ask again later'}", where=where)
        if name in self._ready:
            there = ", ".join(map(str, self._ready[name]))
            return NotFound(f"there is no version {version!r}; versions: {there}", where=f"model {name!r}")
        names = sorted({one.name for one in self.index})
        near = meant(name, names)
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        hint = f"did you mean {near[0]!r}?" if near else None
        return NotFound(f"there is no model {name[:100]!r}; models: {listed or 'none'}", hint=hint)

    async def start(self) -> None:
        """Load all models, and begin to look for changes. Raises TractError where the source is no repository.

        With ``Settings.strict``, raises for the first model that cannot be loaded.
        """
        for name, found in (await self._scanned()).items():
            await self._take(found)
            failed = [one for one in self.index if one.name == name and one.state == "UNAVAILABLE"]
            if failed and self._settings.strict:
                raise ModelError(failed[0].reason, where=f"model {name!r}")
        self.is_started = True
        if self._settings.watch_s:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load a model, or load it again. ``config``: in place of what its folder says.

        ``files``: in place of those in the repository, by their paths in the folder of the model; until it is loaded
        without any. Raises NotFound where the repository has no such model, Failed with the reason where it cannot be
        loaded, BadRequest for what is no configuration, and as `SentModels.write` does.
        """
        told = None if config is None else _read(config, name)
        if files:
            await self._load_sent(name, config, files)
            return
        found = (await self._apart(found_in, self._source, self._settings)).get(name)
        if found is None and (found := self._sent.found.get(name)) is None:
            raise self._absent(name, "") if name not in self._ready else NotFound(f"the files of {name!r} are gone")
        if told is not None:
            self._given[name] = told
        else:
            self._given.pop(name, None)
        self._unloaded.discard(name)
        problem = await self._take(found)
        if self._sent.found.get(name) is not found:
            await self._apart(self._sent.drop, name)
        if problem is not None:
            raise _failed(problem, name)

    async def _load_sent(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        if config is None:
            raise BadRequest("files of a model come with its configuration", hint="config='{}' says nothing")
        found = await self._apart(self._sent.write, name, config, files)
        self._given.pop(name, None)
        self._unloaded.discard(name)
        before = self._sent.put(found)  # at once, as whoever watches takes out what is nowhere
        problem = await self._take(found)
        await self._apart(partial(self._sent.settle, found, before, is_served=problem is None))
        if problem is not None:
            raise _failed(problem, name)

    async def unload(self, name: str) -> None:
        """Take a model out; what it has is still answered. Raises NotFound where there is none."""
        if not any(one.name == name for one in self._entries.values()):
            raise self._absent(name, "")
        self._unloaded.add(name)
        async with self._lock(name):
            self._leave(name, "unloaded")
            await self._apart(self._sent.drop, name)

    async def reload(self) -> None:
        """Take what is new on disk, load again what has changed, leave what is gone."""
        scanned = await self._scanned()
        for name in [one for one in self._prints if one not in scanned]:
            async with self._lock(name):
                self._leave(name, "its files are gone")
                for key in [key for key in self._entries if key[0] == name]:
                    del self._entries[key]
                self._prints.pop(name, None)
        for name, found in scanned.items():
            if name not in self._unloaded and self._prints.get(name) != await self._apart(fingerprint, found):
                await self._take(found)

    async def close(self) -> None:
        """Take no more, and return once everything is answered."""
        if self._watching is not None:
            self._watching.cancel()
        for name in [*self._ready]:
            self._leave(name, "the server ends")
        while self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)
        await asyncio.to_thread(self._sent.close)  # the thread that loads may still try a model
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _apart(self, function: Callable[..., Any], *given: Any) -> Any:
        """What a function gives, in the thread that loads."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *given))

    async def _scanned(self) -> dict[str, FoundModel]:
        return {**await self._apart(found_in, self._source, self._settings), **self._sent.found}

    async def _watch(self) -> None:
        """Look for changes, and take those that have come to rest."""
        before: Any = None
        taken: Any = None
        while True:
            await asyncio.sleep(self._settings.watch_s)
            now = await self._apart(files_in, self._source)
            if now == before and now != taken:
                await self._reload_safely()
                taken = now
            before = now

    async def _reload_safely(self) -> None:
        try:
            await self.reload()
        except (TractError, OSError) as error:
            log("repository.unreadable", error=str(error))

    async def _take(self, found: FoundModel) -> ModelError | None:
        """Load the versions of a model, and put them in the place of those before. Returns what went wrong."""
        name = found.name
        async with self._lock(name):
            self._prints[name] = await self._apart(fingerprint, found)
            if found.problem is not None:
                self._say(name, "", "UNAVAILABLE", found.problem)
                return found.problem
            config, problem = self._given.get(name, found.config), None
            self._entries.pop((name, ""), None)
            for version, path in found.versions.items():
                problem = await self._take_version(name, version, path, config) or problem
            for version in [one for one in self._ready.get(name, {}) if one not in found.versions]:
                self._leave_version(name, version, "it is no longer served")
            return problem

    async def _take_version(self, name: str, version: int, path: Path, config: ModelConfig) -> ModelError | None:
        if version not in self._ready.get(name, {}):
            self._say(name, str(version), "LOADING")
        try:
            model: ServedModel = await self._apart(made, name, str(version), path, config, self._settings)
        except Exception as error:  # whatever a plugin raises: a broken model harms no other
            problem = error if isinstance(error, ModelError) else ModelError(str(error))
            log("model.failed", model=name, version=version, error=str(problem))
            if version not in self._ready.get(name, {}):
                self._say(name, str(version), "UNAVAILABLE", problem)
            return problem
        before = self._ready.setdefault(name, {}).get(version)
        if before is not None and isinstance(model, Served):
            model.follow(before)
        self._ready[name][version] = model
        self._say(name, str(version), "READY")
        log("model.ready", model=name, version=version, **model.told())
        if before is not None:
            self._close(before)
        return None

    def _leave(self, name: str, reason: str) -> None:
        for version in [*self._ready.get(name, {})]:
            self._leave_version(name, version, reason)

    def _leave_version(self, name: str, version: int, reason: str) -> None:
        model = self._ready[name].pop(version)
        if not self._ready[name]:
            del self._ready[name]
        self._say(name, str(version), "UNAVAILABLE", ModelError(reason, hint=""))
        log("model.left", model=name, version=version, reason=reason)
        self._close(model)

    def _close(self, model: ServedModel) -> None:
        task = asyncio.get_running_loop().create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _say(self, name: str, version: str, state: State, problem: TractError | None = None) -> None:
        reason = "" if problem is None else str(problem)
        self._entries[name, version] = Entry(name, version, state, reason)


def _read(config: str, name: str) -> ModelConfig:
    """A configuration that a client has sent. Raises BadRequest."""
    try:
        return ModelConfig.of_text(config, f"the configuration of {name!r}")
    except ModelError as error:
        raise BadRequest(error.problem, where=error.where, hint=error.hint) from None


def _failed(problem: ModelError, name: str) -> Failed:
    return Failed(problem.problem, where=problem.where or f"model {name!r}", hint=problem.hint)
