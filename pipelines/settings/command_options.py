"""The flags that belong to commands and not to steps."""

import dataclasses
from typing import Literal

from maskmill.errors import UnusableInputError
from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The flags of every command."""

    quiet: bool = option(False, help="print nothing but errors")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] | None = option(
        None, help="log to standard error from this level on, what Beam does included"
    )
    log_format: Literal["text", "json"] = option(
        "text", help="how standard error is written: with json each line is an object, progress and failures included"
    )

    def __post_init__(self) -> None:
        if self.quiet and self.log_level is not None:
            raise UnusableInputError("--quiet and --log_level exclude each other; give one of them.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The flag of the commands that run on Beam."""

    workers: int | None = option(
        None, help="processes of the local runner (default: one a core, and one for little input, as 24 MB of a dump)"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """The flags of `maskmill index`."""

    output: str | None = option(None, help="name of the index; only for a single file")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConfigOptions:
    """The flag of `maskmill build` that no section has."""

    print_config: bool = option(
        False, help="print the build with a comment for each option, every default without CONFIG.yaml, and stop"
    )
