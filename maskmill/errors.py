"""The two ways a command ends badly, each carrying one sentence for the user, and the exit code after a signal."""

# The exit code of a process that a signal ended is this plus the number of the signal, as in a shell.
SIGNAL_EXIT = 128


class UnusableInputError(Exception):
    """The command or its input is unusable (exit code 2). The message says what, where and what to do."""


class MissingFileError(UnusableInputError):
    """There is no file of this name."""


class RunFailedError(Exception):
    """The run started and could not be finished (exit code 1). The message says what, where and what to do."""
