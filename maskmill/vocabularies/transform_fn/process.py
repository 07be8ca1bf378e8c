"""A process that makes TensorFlow's files of a vocabulary: the parent's side and its own.

TensorFlow takes a gigabyte, and numbers names in its files through a process's life. So each process makes one
vocabulary's files: its memory is freed, and the same vocabulary gives the same bytes. It ends with its parent.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any, BinaryIO, cast

from maskmill.errors import RunFailedError
from maskmill.vocabularies.learning import LearnedVocabulary, WordCounts
from maskmill.vocabularies.options import VocabularyOptions

# The folder of all files, which tft.TFTransformOutput reads, and the folders in it.
FOLDER = "tft"
PATTERNS = tuple(
    f"{FOLDER}/{folder}/*"
    for folder in ("transform_fn", "transform_fn/assets", "transform_fn/variables", "transformed_metadata")
)
# The names in TFTransformOutput.vocabulary_by_name: the pieces in the order of their ids; words with their counts.
VOCABULARY, WORDS = "vocabulary", "words"

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from maskmill.vocabularies.transform_fn import process; process.serve(sys.argv[2])"
)
# No GPU, because the process has no use for one; log only errors.
_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}


def transform_fn_files(
    words: WordCounts, threshold: int, learned: LearnedVocabulary, options: VocabularyOptions
) -> dict[str, bytes]:
    """Return TensorFlow's files of a vocabulary: their contents by name, the folder FOLDER included.

    They are a SavedModel from text to ids, with the vocabulary (VOCABULARY) and tft.vocabulary's table of the words
    (WORDS) among its assets; see saved_model.py and word_vocabulary.py.

    words, threshold: the words that the vocabulary was learnt from, and the least count of a word.

    Raises:
      RunFailedError: TensorFlow failed, or something killed the process.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, FOLDER)
        os.mkdir(folder)
        _run((words, threshold, learned, options), scratch)
        return dict(sorted(_contents(folder)))


def _run(task: Any, scratch: str) -> None:
    """Run a process on a task, and wait for its end."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path), scratch],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            env=os.environ | _ENVIRONMENT,
            # Ctrl-C is for the parent; this process ends when its parent's end of the pipe is closed.
            start_new_session=True,
        )
        pipe = cast(BinaryIO, process.stdin)
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended; the exit code gives the reason
                pickle.dump(task, pipe, pickle.HIGHEST_PROTOCOL)
                pipe.flush()
            code = process.wait()
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        if code:
            printed.seek(0)
            raise _failure(code, printed.read().decode("utf-8", "replace").strip())


def _failure(code: int, printed: str) -> RunFailedError:
    if code < 0:
        return RunFailedError(
            f"Something killed the process that makes TensorFlow's files ({signal.Signals(-code).name}), often for "
            "want of memory; run the same command again, on a machine with more memory or without --transform_fn."
        )
    last = printed.splitlines()[-1] if printed else f"exit code {code}"
    return RunFailedError(f"TensorFlow's files could not be made ({last}); run the command without --transform_fn.")


def _contents(folder: str) -> list[tuple[str, bytes]]:
    """Return the name and the content of every file below a folder; names begin with the folder's name."""
    found = []
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                found.append((os.path.relpath(path, os.path.dirname(folder)).replace(os.sep, "/"), file.read()))
    return found


def serve(scratch: str) -> None:
    """Read a task from stdin and write the files below `scratch`; the main function of the process."""
    task = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _make(scratch, *task)


def _end_with_parent() -> None:
    """Wait for the end of stdin, which comes when the parent ends, because it writes nothing after the task."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _make(
    scratch: str, words: WordCounts, threshold: int, learned: LearnedVocabulary, options: VocabularyOptions
) -> None:
    from maskmill.vocabularies.transform_fn.saved_model import save_transform_fn
    from maskmill.vocabularies.transform_fn.word_vocabulary import write_word_vocabulary

    folder = os.path.join(scratch, FOLDER)
    # First, so that the names in it do not depend on the number of words.
    save_transform_fn(learned, options, VOCABULARY, folder)
    working = os.path.join(scratch, "words")
    os.mkdir(working)
    path = write_word_vocabulary(words, threshold, WORDS, working)
    # TFTransformOutput finds a vocabulary among the assets by its name.
    os.replace(path, os.path.join(folder, "transform_fn", "assets", WORDS))
