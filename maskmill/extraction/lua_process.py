"""Runs a dump's Scribunto modules in a process of its own (lua_sandbox.py); this is the owning worker's side.

The process starts with the first call and stays for later ones, which reuse what earlier calls have loaded. So that no
result depends on earlier calls, a call that comes near a limit counts as unsure (`UnsureError`), and its page is
processed again with a new process and the full limits, which then decide.
"""

import atexit
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.extraction.lua_sandbox import TICK, Channel

# Shares of the limits for a process that other calls have used: the libraries cache some objects, so a call takes a
# little less there; memory that Lua's collector has not freed yet counts, too.
_USED_SHARE, _USED_MEMORY_SHARE = 0.8, 0.25

_ENDING_SECONDS = 5.0  # for a process to end after its pipes are closed

_PACKAGES = ("lupa", "wikitextprocessor")
_LIBRARIES = ("lua", "mediawiki-extensions-Scribunto", "includes", "engines", "LuaCommon", "lualib")
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")  # Python may not start without them
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from maskmill.extraction import lua_sandbox; "
    "lua_sandbox.serve()"
)

# Answers a request of the process, by its name; also returns what the answer depends on ("page", "date", "templates").
Answer = Callable[[str, list[Any]], tuple[Any, set[str]]]


class Limits(NamedTuple):
    """Limits of modules: Lua instructions of a call with all that it calls, and of a page; bytes of memory; CPU seconds
    of a call, after which the process ends.
    """

    call_instructions: int = 20_000_000
    page_instructions: int = 200_000_000
    memory: int = 256 << 20
    cpu_seconds: float = 10


class UnsureError(Exception):
    """A call came so near a limit that the calls before it may matter."""


class Called(NamedTuple):
    """The result of a module's call: its text, or None if it failed; its requests; its share of a page's limit, in
    ticks.

    limit: the limit that ended it, or None: the page's, which other calls share, or one of its own.
    """

    text: str | None
    asked: frozenset[str]
    ticks: int
    limit: Literal["page", "own", "seconds"] | None


def libraries_folder() -> str:
    """Return the folder of Scribunto's libraries in Lua, which come with wikitextprocessor.

    Raises:
      UnusableInputError: they or Lua are not installed.
    """
    lua, found = map(importlib.util.find_spec, _PACKAGES)
    if found is None or lua is None:
        raise UnusableInputError(
            "--expand_templates runs the dump's Lua modules, and lupa or wikitextprocessor, which has Scribunto's "
            "libraries, is not installed; pip install 'maskmill[lua]'."
        )
    return str(Path(next(iter(found.submodule_search_locations or ()))).joinpath(*_LIBRARIES))


def libraries_version() -> str:
    """Return the versions of the packages that, besides a wiki's modules, determine the modules' results.

    Raises:
      UnusableInputError: they are not installed.
    """
    libraries_folder()
    return " ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)


_LIMITS = Limits()


class LuaModules:
    """The modules of a wiki.

    site: as for lua_libraries.Libraries. now: the dump's date in seconds since 1970. `begin_page` starts a page.
    """

    def __init__(self, site: Mapping[str, Any], now: int, limits: Limits = _LIMITS) -> None:
        self._start = {"site": site, "now": now, "libraries": libraries_folder(), "cpu_seconds": limits.cpu_seconds}
        self._limits = limits
        self._process: _Process | None = None
        self._is_whole = False  # whether the page has a new process
        self._ticks = 0
        self._depth = 0
        self._is_over = False  # once a call of the page has run out of seconds, which no earlier call can change
        self._limited: set[str] = set()  # modules whose last call a limit ended

    def begin_page(self, *, anew: bool) -> None:
        """Begin a page; anew: with a new process, whose limits decide."""
        self._ticks, self._depth, self._is_over = 0, 0, False
        if anew or self._is_whole:
            self.close()
        self._is_whole = anew

    def use(self, ticks: int) -> None:
        """Count the ticks of a call with a known result towards the page's limit."""
        self._ticks += ticks
        if not self._is_whole and self._ticks > self._page_ticks:
            raise UnsureError

    @property
    def ticks(self) -> int:
        """The ticks that the page has used of its limit."""
        return self._ticks

    @property
    def _page_ticks(self) -> int:
        return self._share(self._limits.page_instructions)

    def _share(self, instructions: int) -> int:
        """Return instructions as ticks, reduced if the process was used before."""
        return int(instructions // TICK * (1 if self._is_whole else _USED_SHARE))

    def call(self, module: str, function: str, frames: Mapping[str, Any], page: str, answer: Answer) -> Called:
        """Call a function of a module. frames: by identity their title and arguments.

        Raises:
          UnsureError: the page has to be done again (`begin_page`).
        """
        if self._is_over:
            return Called(None, frozenset(("page",)), 0, "page")
        if not self._is_whole and module in self._limited:
            raise UnsureError  # it would probably reach its limit again, so do not try twice
        own = self._share(self._limits.call_instructions)
        ticks = min(own, self._page_ticks - self._ticks)
        if self._process is None or self._process.owner != os.getpid():  # a fork must not share its parent's process
            memory = int(self._limits.memory * (1 if self._is_whole else _USED_MEMORY_SHARE))
            self._process = _Process({**self._start, "memory": memory})
        process = self._process
        message = {"call": [module, function], "frames": frames, "page": page, "ticks": ticks}
        limit: Literal["page", "own", "seconds"] = "own" if ticks == own else "page"
        self._depth += 1
        try:
            result = process.result(message, answer)
        except EOFError:
            if process.was_ended_by_seconds():
                self._is_over, limit = True, "seconds"
            self.close()
            # Its requests are unknown.
            result = {"result": "limit", "asked": ["page"], "ticks": self._page_ticks}
        except BaseException:
            # The process waits for an answer that will never come.
            self.close()
            raise
        self._depth -= 1
        if self._depth == 0:
            self._ticks += result["ticks"]
        if result["result"] != "limit":
            self._limited.discard(module)
        elif not self._is_over:
            self._limited.add(module)
            if not self._is_whole:
                raise UnsureError
            if self._depth == 0 and result.get("text") == "memory":
                self.close()
        text = result["text"] if result["result"] == "text" else None
        was_limited = result["result"] == "limit"
        return Called(text, frozenset(result["asked"]), result["ticks"], limit if was_limited else None)

    def close(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.owner == os.getpid():
            self._process.kill()
        self._process = None


class _Process:
    """The parent's side of the process; `owner` is the parent's process id."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **{name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
                "TZ": "UTC",
                "PYTHONHASHSEED": "0",
            },
            # Ctrl-C is for the parent; this process ends when its parent's end of the pipes is closed.
            start_new_session=True,
        )
        self.owner = os.getpid()
        _running.add(self)
        self._channel = Channel(cast(BinaryIO, self._process.stdout), cast(BinaryIO, self._process.stdin))
        self._channel.send(start)
        if self._channel_ends("ready"):
            raise RunFailedError(
                f"The process that runs a dump's Lua modules did not start (code {self._process.wait()}); see whether "
                "`python -c 'import lupa.lua51'` works."
            )

    def _channel_ends(self, key: str) -> bool:
        try:
            return key not in self._channel.receive()
        except EOFError:
            return True

    def result(self, call: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """Return the result of a call. Raises EOFError if the process ended."""
        message = self._exchange(call)
        while "result" not in message:
            content, asked = answer(message["ask"], message["given"])
            message = self._exchange({"answer": content, "asked": sorted(asked)})
        return message

    def _exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            self._channel.send(message)
            return self._channel.receive()
        except (BrokenPipeError, ValueError):
            raise EOFError from None

    def was_ended_by_seconds(self) -> bool:
        """Return whether the process, which answers no more, ended because a call took too many seconds of CPU."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_ENDING_SECONDS) == -signal.SIGPROF
        return False

    def kill(self) -> None:
        """End the process."""
        _running.discard(self)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                cast(BinaryIO, stream).close()


_running: "weakref.WeakSet[_Process]" = weakref.WeakSet()


@atexit.register
def _kill_running() -> None:
    for process in list(_running):
        if process.owner == os.getpid():
            process.kill()
