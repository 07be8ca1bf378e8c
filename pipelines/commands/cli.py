"""The `maskmill` command, which `maskmill/command.py` calls: reads a command line, and says how a command ended."""

import errno
import itertools
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from maskmill import compilation
from maskmill.errors import SIGNAL_EXIT, RunFailedError, UnusableInputError
from pipelines.commands.command_list import COMMANDS
from pipelines.running import interruption
from pipelines.settings import help
from pipelines.terminal import console

if TYPE_CHECKING:
    from pipelines.settings.options import Option

DONE, FAILED, UNUSABLE = 0, 1, 2
INTERRUPTED = SIGNAL_EXIT + signal.SIGINT

_HELP = ("-h", "-help", "--help")
_VERSION = ("-version", "--version")


def _usage_of(known: "Mapping[str, Option]") -> str:
    required = [f"--{name} VALUE" for name, needed in known.items() if needed.is_required]
    return f"{' '.join(required)} [--flag VALUE …]"


def _compile_what_reads() -> None:
    from pipelines.stages import kernels

    kernels.prepare(kernels.OF_READING)


def _split(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the command's name, and its arguments: flags in front of the name are the command's, too."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place].lstrip("-") in ("log_level", "log_format") else 1
    if place >= len(arguments):
        return None, list(arguments)
    # The programs of the reference have underscores in their names.
    name = arguments[place].removesuffix(".py").replace("_", "-")
    return name if name in COMMANDS else arguments[place], [*arguments[:place], *arguments[place + 1 :]]


def _wants_json(arguments: Sequence[str]) -> bool:
    """Return whether --log_format json is among the arguments: a command line that cannot be read is refused as JSON,
    too.
    """
    flags_given = [argument.replace("--", "-", 1) for argument in arguments]
    return "-log_format=json" in flags_given or ("-log_format", "json") in itertools.pairwise(flags_given)


def _help_of(name: str) -> str:
    command, flags = COMMANDS[name], COMMANDS[name].flags
    return help.of_command(
        name,
        command.help,
        usage=command.usage or _usage_of(flags),
        example=command.example,
        groups=help.in_groups(flags),
        takes_beam_flags=command.beam,
    )


def _run(name: str | None, arguments: list[str], prints: console.Console, version: str) -> int:
    """Run a command; return its exit code."""
    asked = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if name == "help":
        name, asked = next((a for a in arguments if a in COMMANDS), None), ["--help"]
    if name is not None and name not in COMMANDS:
        from pipelines.settings.options import nearest

        hint = nearest(name, COMMANDS, otherwise="; see maskmill --help")
        raise UnusableInputError(f"{name}: there is no such command{hint}")
    if any(argument in _VERSION for argument in asked):
        print(f"maskmill {version}")
        return DONE
    if any(argument in _HELP for argument in asked) or (name is None and not arguments):
        print(help.of_program({name: c.help for name, c in COMMANDS.items()}) if name is None else _help_of(name))
        return DONE if asked else UNUSABLE
    if name is None:
        raise UnusableInputError(f"{arguments[0]}: a command is missing in front of it; see maskmill --help.")
    from pipelines.settings import beam_flags, flags, options
    from pipelines.settings.command_options import CommonOptions

    command = COMMANDS[name]
    line = flags.parse(
        arguments, command.flags, beam_flags.BeamFlags if command.beam else None, takes_names=command.takes_names
    )
    common = options.from_flags(CommonOptions, line.values)
    keeps_output = command.prints_result or any(line.values.get(flag) for flag in command.prints_with)
    with prints.listening(quiet=common.quiet, level=common.log_level, keeps_output=keeps_output):
        # What runs stages says more exactly what it runs.
        compilation.before_first(_compile_what_reads)
        returned = command.run(line)
        return returned if isinstance(returned, int) else DONE


def _shortage(error: OSError | ImportError) -> str:
    """Return the sentence for an error by which the machine says that it has too little of something; empty for any
    other.
    """
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
        return f"Too few files may be open at once ({error}); raise the limit, as in `ulimit -n 1024`."
    # A library cannot be loaded: the linker tells the reason in words alone.
    if getattr(error, "errno", None) in (errno.ENOMEM, errno.EAGAIN) or re.search(
        "failed to map|annot allocate", str(error)
    ):
        return f"There is not enough memory ({error}); free some, or raise the limit (`ulimit -v`)."
    return ""


def main(argv: Sequence[str] | None = None, *, version: str = "of a checkout") -> int:
    """Run a command line; return its exit code. `version` is what --version prints.

    0: done; 1: the run failed; 2: the command or its input is unusable; 130: interrupted by Ctrl-C.
    """
    name, arguments = _split(sys.argv[1:] if argv is None else argv)
    with console.opened(as_json=_wants_json(arguments)) as prints:
        said = f"maskmill {name}" if name in COMMANDS else "maskmill"
        try:
            code = _run(name, arguments, prints, version)
            prints.finish()
            return code
        except UnusableInputError as error:
            prints.say(f"{said}: {error}")
            return UNUSABLE
        except RunFailedError as error:
            prints.say(f"{said}: {error}")
            return FAILED
        except MemoryError as error:
            detail = f" ({error})" if str(error) else ""
            prints.say(f"{said}: There is not enough memory{detail}; free some, or take smaller pieces of input.")
            return FAILED
        except (OSError, ImportError) as error:
            if not (shortage := _shortage(error)):
                raise
            prints.say(f"{said}: {shortage}")
            return FAILED
        except KeyboardInterrupt:
            # In a process of the command's own, interruption.Watch ends it before this is reached.
            prints.say(f"{said}: interrupted; {interruption.HOW_TO_GO_ON}")
            return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
