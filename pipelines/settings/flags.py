"""Reads a command line: our own options as flags, Beam's flags, and the names of files.

Flags take argparse's forms and absl's: `--x 3`, `--x=3`, `-x=3`, `--flag`, `--flag=False`, `--flag False`, `--noflag`.
A flag is never abbreviated. Of a number, a choice or a switch that is given twice the last value counts, as in absl. A
list is not given twice, nor are two names: one of them would be lost without a word.
"""

import collections
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from pipelines.settings.beam_flags import BeamFlag, checked
from pipelines.settings.options import Option, nearest, shown

_FLAG = re.compile(r"--?[A-Za-z]")
# Of all names of a command's flags some are always a little alike.
_LIKENESS_OF_BEAM_FLAGS = 0.75
_FLAGS_OF_ABSL = ("alsologtostderr", "logtostderr", "stderrthreshold", "verbosity", "v", "log_dir", "showprefixforinfo")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommandLine:
    """The arguments of a command line, sorted.

    Attributes:
      values: the values of our own flags by name.
      names: the arguments that are neither flags nor values of flags.
      beam: Beam's flags, each as `--name` or `--name=value`.
    """

    values: Mapping[str, Any]
    names: tuple[str, ...]
    beam: tuple[str, ...]


def parse(
    argv: Sequence[str],
    known: Mapping[str, Option],
    beam_flags: Callable[[], Mapping[str, BeamFlag]] | None = None,
    *,
    takes_names: bool = False,
) -> CommandLine:
    """Read the arguments after a subcommand.

    known: the command's own flags by name. beam_flags: gives Beam's flags; called only for a flag that is not the
    command's own. None if the command takes none of Beam's. takes_names: whether arguments that belong to no flag are
    names of files.

    Raises:
      UnusableInputError: an unknown flag, with the nearest name; a missing or wrong value; a stray argument.
    """
    return _Reader(argv, known, beam_flags, takes_names).read()


def written(line: CommandLine, *, without: Sequence[str]) -> list[str]:
    """Return the flags of a command line as arguments that give the same values; without: the names of those to leave
    out.
    """
    words = []
    for name, value in line.values.items():
        if name not in without:
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words.append(f"--{name}" if value is True else f"--{name}={text}")
    return [*words, *line.beam]


def only_path(names: Sequence[str], otherwise: str) -> str:
    """Return the one path that a command line names; `otherwise` tells what to do if it names none or two.

    Raises:
      UnusableInputError: it does not name one.
    """
    if len(names) != 1:
        fault = "PATH is missing" if not names else f"{names[1]}: this is a second path"
        raise UnusableInputError(f"{fault}; {otherwise}.")
    return names[0]


class _Reader:
    """Reads one command line from its beginning to its end."""

    def __init__(
        self,
        argv: Sequence[str],
        known: Mapping[str, Option],
        beam_flags: Callable[[], Mapping[str, BeamFlag]] | None,
        takes_names: bool,
    ) -> None:
        self._rest = collections.deque(argv)
        self._known = known
        self._beam_flags = beam_flags
        self._takes_names = takes_names
        self._values: dict[str, Any] = {}
        self._names: list[str] = []
        self._beam: list[str] = []
        # The flag of ours in front of the next argument.
        self._last: Option | None = None

    def read(self) -> CommandLine:
        while self._rest:
            argument = self._rest.popleft()
            if argument == "--":
                while self._rest:
                    self._name(self._rest.popleft())
            elif _FLAG.match(argument):
                written, equals, text = argument.partition("=")
                self._flag(written, text if equals else None)
            else:
                self._name(argument)
        beam = checked(self._beam) if self._beam else []
        return CommandLine(values=self._values, names=tuple(self._names), beam=tuple(beam))

    def _flag(self, written: str, text: str | None) -> None:
        name = written.removeprefix("-").removeprefix("-")
        option, negated = self._known.get(name), self._negated(name)
        self._last = option
        if option is not None:
            self._own(option, text)
        elif negated is not None:
            if text is not None:
                raise UnusableInputError(f"--{name} takes no value; give --{negated.name}={text}.")
            self._values[negated.name] = False
        else:
            known = self._beam_flags() if self._beam_flags is not None else {}
            if name not in known:
                raise UnusableInputError(f"{written}: {self._unknown(name, known)}")
            self._pass_on(known[name], text)

    def _negated(self, name: str) -> Option | None:
        """Return the switch that `--noNAME`, or in a build `--SECTION.noNAME`, switches off."""
        section, dot, last = name.rpartition(".")
        option = self._known.get(f"{section}{dot}{last[2:]}") if last.startswith("no") else None
        return option if option is not None and option.kind.is_switch else None

    def _own(self, option: Option, text: str | None) -> None:
        flag = f"--{option.name}"
        if option.kind.is_switch and text is None:
            # A value may follow; anything else is the next argument.
            text = self._rest.popleft() if self._rest and self._rest[0].lower() in option.kind.words else "true"
        elif text is None:
            text = self._value(flag, option.kind.wanted)
        if option.kind.is_list and option.name in self._values:
            raise UnusableInputError(f"{flag} is given twice; give all its values once, separated by commas.")
        value = option.kind.read(text, flag)
        if option.kind.type is str and option.kind.choices is None and self._values.get(option.name, value) != value:
            raise UnusableInputError(
                f"{flag} is given twice ({shown(self._values[option.name])}, then {shown(value)}); give it once."
            )
        self._values[option.name] = value

    def _pass_on(self, beam_flag: BeamFlag, text: str | None) -> None:
        flag = f"--{beam_flag.name}"
        if not beam_flag.takes_value:
            if text is not None:
                raise UnusableInputError(f"{flag} takes no value; leave {shown(text)} out.")
            self._beam.append(flag)
            return
        if text is None and beam_flag.value_is_optional and not self._has_value():
            self._beam.append(flag)
            return
        text = self._value(flag, "a value") if text is None else text
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UnusableInputError(f"{flag} must be UTF-8, not {shown(text)}.") from None
        self._beam.append(f"{flag}={text}")

    def _has_value(self) -> bool:
        return bool(self._rest) and not _FLAG.match(self._rest[0]) and self._rest[0] != "--"

    def _value(self, flag: str, wanted: str) -> str:
        if not self._has_value():
            raise UnusableInputError(f"{flag}: its value is missing; give {wanted}.")
        return self._rest.popleft()

    def _name(self, argument: str) -> None:
        last, self._last = self._last, None
        if self._takes_names:
            try:
                argument.encode()
            except UnicodeEncodeError:
                raise UnusableInputError(f"{shown(argument)}: this name is not UTF-8; rename the file.") from None
            self._names.append(argument)
        elif last is not None and last.kind.is_switch:
            raise UnusableInputError(f"--{last.name} must be {last.kind.wanted}, not {shown(argument)}.")
        elif last is not None and last.kind.is_list:
            raise UnusableInputError(
                f"{argument}: --{last.name} takes one value; quote a pattern, and separate several names by commas."
            )
        else:
            raise UnusableInputError(f"{argument}: this argument belongs to no flag; see --help.")

    def _unknown(self, name: str, beam: Mapping[str, BeamFlag]) -> str:
        """Return what is wrong with a flag that nobody knows."""
        import difflib

        same = [known for known in self._known if known.rpartition(".")[2] == name]
        if same:
            return f"a flag of a build has its section in front; give {' or '.join(f'--{flag}' for flag in same)}."
        if name in _FLAGS_OF_ABSL:
            return "this flag of absl's has no meaning here; leave it out, or choose with --log_level what is logged."
        sections = {known.rpartition(".")[2]: known for known in self._known if "." in known}
        found = difflib.get_close_matches(name, self._known, n=1)
        if not found and (of_section := difflib.get_close_matches(name, sections, n=1)):
            found = [sections[of_section[0]]]
        if found:
            return f"there is no such flag; did you mean --{found[0]}?"
        hint = nearest(name, beam, prefix="--", otherwise="; see --help", cutoff=_LIKENESS_OF_BEAM_FLAGS)
        return f"there is no such flag{hint}"
