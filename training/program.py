"""A training by a program of the user's own: the facts that it gets, and when it is started again."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from maskmill.errors import SIGNAL_EXIT, RunFailedError, UnusableInputError
from maskmill.storage import files
from training import provenance
from training.logs import say
from training.options import TrainOptions

# In the directory of the checkpoints: the data of the program's last start, and whether it has finished.
RECORD = "maskmill-program.json"
# Options that a program gets as facts about the build; it gets the user's other options unchanged.
_OF_BUILD = (
    "program", "output_dir", "input_file", "eval_file", "vocab_file", "tokenizer_file", "release", "release_fingerprint"
)  # fmt: skip
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(options: TrainOptions) -> int:
    """Start the program, unless it has finished on the same data. Return 0, or 128 + the signal that ended the run.

    Raises:
      UnusableInputError: the directory of the checkpoints belongs to a training on other data.
      RunFailedError: the program failed.
    """
    told, data = _told(options)
    record = {"data": data, "program": identity(options.program), "options": json.loads(_json(told["options"]))}
    path = files.join(options.output_dir, RECORD)
    before = json.loads(files.read_if_there(path) or b"{}")
    if before.get("data", data) != data:
        raise UnusableInputError(
            f"{options.output_dir}: the program was started here on other examples or another vocabulary; name another "
            "directory, or delete this one."
        )
    if before == record | {"finished": True}:
        say(f"{options.output_dir}: this program has finished on these examples; nothing is left to do")
        return 0
    files.write_bytes(path, _json(record | {"finished": False}))
    if code := _start(options.program, told):
        return code
    files.write_bytes(path, _json(record | {"finished": True}))
    return 0


def _told(options: TrainOptions) -> tuple[dict[str, Any], list[str]]:
    """Return a program's facts, and the checksums of the data (of files without a manifest, names and sizes)."""
    found = provenance.provenance(options, files.read_if_there)
    held_out, manifests = provenance.inputs_of(options.eval_file, files.read_if_there)
    vocabulary = options.vocab_file or options.tokenizer_file
    data = []
    for paths, described in ((found["input"], found["manifests"]), (held_out, manifests)):
        data += [made["sha256"] for made in described]
        if paths and not described:
            data += [f"{files.base_name(file.path)} {file.size}" for file in files.match(paths)]
    if vocabulary is not None:
        data.append(hashlib.sha256(files.read_bytes(vocabulary)).hexdigest())
    told = {
        "examples": found["input"],
        "eval_examples": held_out,
        "vocabulary": vocabulary and provenance.absolute(vocabulary),
        "checkpoints": provenance.absolute(options.output_dir),
        "release": found["release"],
        "release_fingerprint": found["release_fingerprint"],
        "manifests": found["manifests"],
        "options": {
            field.name: getattr(options, field.name)
            for field in dataclasses.fields(options)
            if field.name not in _OF_BUILD and getattr(options, field.name) != field.default
        },
    }
    return told, data


def identity(program: Sequence[str]) -> list[str]:
    """Return a command with the checksums of the scripts and other files in it instead of their names."""
    return [*program[:1], *(files.sha256_of(word) if os.path.isfile(word) else word for word in program[1:])]


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def _start(command: Sequence[str], told: dict[str, Any]) -> int:
    """Run a program to its end. Return 0, or 128 + the signal that stopped this process; raise as `run`."""
    received: list[int] = []

    def pass_on(number: int, _: object) -> None:
        received.append(number)
        say(f"{signal.Signals(number).name} is passed on to the program, whose end is waited for")
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, number)

    with tempfile.TemporaryDirectory(prefix=files.scratch_prefix()) as folder:
        file = os.path.join(folder, "training.json")
        files.write_bytes(file, _json(told))
        variables = {"MASKMILL_TRAIN_JSON": file}
        for name in ("examples", "eval_examples", "vocabulary", "checkpoints", "release", "release_fingerprint"):
            value = told[name]
            variables[f"MASKMILL_{name.upper()}"] = ",".join(value) if isinstance(value, list) else value or ""
        try:
            # In a group of its own, so that Ctrl-C in a terminal reaches the program once.
            process = subprocess.Popen(command, env=os.environ | variables, stdin=subprocess.DEVNULL, process_group=0)
        except OSError as error:
            raise RunFailedError(f"{shlex.join(command)}: cannot be started ({error.strerror}).") from None
        heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, pass_on) for number in heard}
        try:
            code = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if received:
        return SIGNAL_EXIT + received[0]
    if code:
        how = f"ended with code {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"
        raise RunFailedError(f"The program {how}: {shlex.join(command)}; see what it printed.")
    return 0
