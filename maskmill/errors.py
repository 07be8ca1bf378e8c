"""The two ways a command ends badly, each carrying one sentence for the user."""


class UnusableInputError(Exception):
    """The command or its input is unusable (exit code 2). The message says what, where and what to do."""


class MissingFileError(UnusableInputError):
    """There is no file of this name."""


class RunFailedError(Exception):
    """The run started and could not be finished (exit code 1). The message says what, where and what to do."""
