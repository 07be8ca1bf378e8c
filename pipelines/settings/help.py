"""The texts that `maskmill --help` and `maskmill COMMAND --help` print."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.settings.options import Kind, Option

_COMMON = "flags that are needed most"
_METAVARS = {int: "N", float: "X", str: "TEXT", bool: "BOOL"}


def of_command(
    name: str,
    summary: str,
    *,
    usage: str,
    example: str,
    groups: "Mapping[str, Sequence[Option]]",
    takes_beam_flags: bool,
) -> str:
    """Return the help of a command.

    summary: what it does, in one line. usage: what follows the name in a command line. example: a whole command line.
    groups: the flags under each heading, in order.
    """
    import argparse

    parser = argparse.ArgumentParser(
        prog=f"maskmill {name}",
        usage=f"maskmill {name} {usage}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=_epilog(example, takes_beam_flags),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    for heading, options in groups.items():
        group = parser.add_argument_group(heading)
        for option in options:
            switch = option.kind.is_switch and not option.is_required
            group.add_argument(
                f"--{option.name}",
                metavar=metavar(option.kind),
                nargs="?" if switch else None,
                help=option.full_help.replace("%", "%%"),
            )
    return parser.format_help().rstrip("\n")


def _epilog(example: str, takes_beam_flags: bool) -> str:
    import textwrap

    lines = ["example:", f"  {example}", ""]
    notes = "Values follow `=` or a space. A switch may be given as --flag, --noflag or --flag False."
    if takes_beam_flags:
        notes += " Beam's own flags (--runner, --flink_master, --project, …) go through."
    return "\n".join([*lines, textwrap.fill(notes, 78)])


def metavar(kind: "Kind") -> str:
    """Return what stands for a flag's value."""
    if kind.choices is not None:
        return "|".join(kind.words_of_choices)
    return "A,B" if kind.is_list else _METAVARS[kind.type]


def in_groups(options: "Mapping[str, Option]") -> "dict[str, list[Option]]":
    """Return options under the headings that they were declared with; those without one and required ones come
    first.
    """
    groups: dict[str, list[Option]] = {_COMMON: []}
    for option in options.values():
        heading = _COMMON if option.is_required or not option.group else option.group
        groups.setdefault(heading, []).append(option)
    return {heading: members for heading, members in groups.items() if members}


def of_program(commands: Mapping[str, str]) -> str:
    """Return the help of the program, from each command's line."""
    lines = [
        "usage: maskmill COMMAND [--flag VALUE …]",
        "",
        "Turns a Wikipedia dump, or any text corpus, into masked-language-model",
        "pre-training data.",
        "",
        "commands:",
        *(f"  {name:<24} {line}" for name, line in commands.items()),
        "",
        "flags of every command:",
        "  -h, --help               print the help of the command",
        "  --version                print the version",
        "  --quiet                  print nothing but errors",
        "  --log_level LEVEL        log to standard error: DEBUG, INFO, …",
        "  --log_format json        write each line on standard error as JSON",
        "",
        "example:",
        "  maskmill build --print_config > build.yaml   # fill in what is missing",
        "  maskmill build build.yaml",
        "",
        "maskmill COMMAND --help lists a command's flags with an example.",
        "Beam's own flags (--runner, …) go through.",
    ]
    return "\n".join(lines)
