"""The process that runs a wiki's Scribunto modules: Lua 5.1 with Scribunto's libraries, unable to do harm.

Once it is ready it can open no file, socket or process, and has little memory. It asks its parent (lua_process.py) for
contents of the dump. Messages are JSON objects, each after its length (4 bytes, little endian):

    from the parent   {"call": [module, function], "frames": …, "page": …}   a call, also while an answer is awaited
                      {"answer": …}                                       the answer to a request
    from the process  {"ready": true}                                     once, after it has given up its rights
                      {"ask": name, "given": […]}                         `_ASKED` lists the names
                      {"result": "text" | "failed" | "limit", "text": …, "ticks": …, "asked": ["page", "date", …]}

Limits are counted in instructions of Lua (data/sandbox.lua), so that a module gives the same result on every machine.
Work within one of Lua's own functions is not counted; seconds of CPU limit it, and end the process.
"""

import contextlib
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, BinaryIO

from maskmill.extraction import lua_libraries
from maskmill.extraction.lua_libraries import HostError

TICK = 10_000  # instructions between two checks of the limit
LONGEST_TEXT = 2_000_000  # characters of an answer, or of a request

_PYTHON_BYTES = 1 << 30  # of addresses, besides Lua's
_LENGTH = struct.Struct("<I")
_ASKED = ("module_text", "exists", "preprocess", "expand_template", "call_function", "format_date", "language_names")


class Sandbox:
    """Runs calls of modules, and asks the parent for what it lacks.

    start: the parent's first message. sources: Scribunto's libraries by path.
    """

    def __init__(self, start: Mapping[str, Any], sources: Mapping[str, bytes], code: bytes, channel: "Channel") -> None:
        from lupa import lua51

        self._channel = channel
        self._start = start
        self._page = ""
        self._asked: set[str] = set()
        self._noted = dict.fromkeys(("page", "date", "templates"), 0)  # the number of requests for each
        self._depth = 0
        # Lua cannot access attributes of Python objects, and strings are bytes.
        self._lua = lua51.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_filter=_no_attributes,
            max_memory=start["memory"],
        )
        self._libraries = lua_libraries.Libraries(start["site"], self._ask)
        host: dict[str, Callable[..., Any]] = {
            "now": self._now,
            "use_page": lambda: self._note("page"),
            "asked": lambda: self._noted,
            "this_title": self._this_title,
            "options": self._libraries.options,
            "functions": self._functions,
            **{name: self._asking(name) for name in ("module_text", "preprocess", "expand_template", "call_function")},
        }
        table = self._lua.table_from({name.encode(): self._for_lua(call) for name, call in host.items()})
        library = self._lua.table_from({name.encode(): text for name, text in sources.items()})
        self._invoke, self._begin, self._state = self._lua.execute(code, table, library, TICK)

    def serve(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a call, which may arrive while another one waits for an answer."""
        from lupa import lua51

        module, function = call["call"]
        is_first = self._depth == 0
        page, asked = self._page, self._asked
        self._page, self._asked = call["page"], set()
        if is_first:
            self._begin(call["ticks"])
            signal.setitimer(signal.ITIMER_PROF, self._start["cpu_seconds"])
        self._depth += 1
        try:
            frames = self._to_lua(call["frames"])
            result, text = self._invoke(module.encode(), function.encode(), frames)
        except lua51.LuaMemoryError:
            result, text = b"limit", b"memory"
        except lua51.LuaError as error:
            result, text = b"failed", str(error).encode("utf-8", "replace")
        self._depth -= 1
        if is_first:
            signal.setitimer(signal.ITIMER_PROF, 0)
        ticks, tainted = self._state()
        mine, self._page, self._asked = self._asked, page, asked | self._asked
        if len(text) > LONGEST_TEXT:
            result, text = b"failed", b"more text than a page may have"
        return {
            "result": result.decode(),
            "text": text.decode("utf-8", "replace"),
            "ticks": int(ticks),
            "asked": sorted(mine),
            "tainted": bool(tainted),
        }

    def _note(self, kind: str) -> None:
        self._asked.add(kind)
        self._noted[kind] += 1

    def _now(self) -> float:
        self._note("date")
        return float(self._start["now"])

    def _this_title(self) -> Any:
        self._note("page")
        return self._libraries.title_data(self._page)

    def _functions(self, library: str) -> dict[str, Any]:
        found = self._libraries.functions(library)
        return {name: self._for_lua(call) for name, call in found.items()}

    def _asking(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self._ask(name, *arguments)

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Return the parent's answer; serve calls that the parent makes meanwhile."""
        if name not in _ASKED:
            raise HostError(f"nobody may ask for {name}")
        if not isinstance(arguments[0], str) or _length(arguments) > LONGEST_TEXT:
            raise HostError(f"{name}: no text, or one that is longer than a page may be")
        try:
            self._channel.send({"ask": name, "given": arguments})
            while "call" in (message := self._channel.receive()):
                self._channel.send(self.serve(message))
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone; an exception could be caught by a module
        for kind in message["asked"]:
            self._note(kind)
        return message["answer"]

    def _for_lua(self, call: Callable[..., Any]) -> Callable[..., tuple[bool, Any]]:
        """Return a function for Lua that converts texts and tables both ways; errors become (False, message)."""

        def called(*arguments: Any) -> tuple[bool, Any]:
            try:
                return True, self._to_lua(call(*map(self._from_lua, arguments)))
            except HostError as error:
                return False, str(error).encode()
            except MemoryError:
                return False, _OUT_OF_MEMORY
            except Exception as error:  # noqa: BLE001 - an exception would be an object of Python in Lua's hands
                # The module passed arguments that the function does not accept.
                return False, f"bad argument ({type(error).__name__})".encode()

        return called

    def _to_lua(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.encode("utf-8", "replace")
        if isinstance(value, Mapping):
            return self._lua.table_from({self._to_lua(key): self._to_lua(item) for key, item in value.items()})
        if isinstance(value, list | tuple):
            return self._lua.table_from([self._to_lua(item) for item in value])
        return value

    def _from_lua(self, value: Any, depth: int = 0) -> Any:
        from lupa import lua51

        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if lua51.lua_type(value) == "table":
            if depth > _DEEPEST_TABLE:
                raise HostError("a table that is too deep")
            items = [(self._from_lua(key), self._from_lua(item, depth + 1)) for key, item in value.items()]
            return dict(items)
        if value is None or isinstance(value, bool | int | float):
            return value
        raise HostError("a value that is neither a text, a number nor a table")


_DEEPEST_TABLE = 50
_OUT_OF_MEMORY = b"not enough memory"  # Lua's own words


def _length(value: Any) -> int:
    """Return the number of characters in a request."""
    if isinstance(value, Mapping):
        return sum(map(_length, value)) + sum(map(_length, value.values()))
    return sum(map(_length, value)) if isinstance(value, tuple) else len(str(value))


def _no_attributes(_value: Any, _name: Any, _is_setting: bool) -> Any:
    raise AttributeError("there are none")


class Channel:
    """JSON messages to and from the other process."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        content = json.dumps(message).encode()
        self._sink.write(_LENGTH.pack(len(content)) + content)
        self._sink.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message. Raise EOFError if the other process has ended."""
        head = self._source.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            raise EOFError
        (size,) = _LENGTH.unpack(head)
        content = self._source.read(size)
        if len(content) < size:
            raise EOFError
        message: dict[str, Any] = json.loads(content)
        return message


def _read_sources(folder: str) -> dict[str, bytes]:
    """Return Scribunto's libraries by their paths below the folder, without `.lua`."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".lua"):
                full = os.path.join(path, name)
                with open(full, "rb") as file:
                    found[os.path.relpath(full, folder).removesuffix(".lua")] = file.read()
    return found


def _give_up_rights(memory: int) -> None:
    """Make the process unable to open a file or a socket, to write to one, and to start another process."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    limits = {
        resource.RLIMIT_NOFILE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: _PYTHON_BYTES + memory,
    }
    for which, limit in limits.items():
        # A system may lack one of them, or refuse to lower it; the others apply.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (limit, limit))


def serve() -> None:
    """Answer calls until the parent closes its end of the pipe. The first message has the setup."""
    channel = Channel(os.fdopen(0, "rb"), os.fdopen(1, "wb"))
    sys.stdout = sys.stderr
    start = channel.receive()
    sources = _read_sources(start["libraries"])
    code = (resources.files("maskmill.extraction") / "data" / "sandbox.lua").read_bytes()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    sandbox = Sandbox(start, sources, code, channel)
    _give_up_rights(start["memory"])
    channel.send({"ready": True})
    while True:
        try:
            call = channel.receive()
        except EOFError:
            return
        result = sandbox.serve(call)
        if result["tainted"]:
            sandbox = Sandbox(start, sources, code, channel)
        channel.send(result)
