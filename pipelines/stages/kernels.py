"""Which kernels a command runs. They are compiled before it starts, on all cores, with a bar on a terminal.

A stage that is checked says exactly what it runs (Stage.kernels). Checks may run a kernel before that, to look into a
bz2 file, say; then all that the options ask for is compiled, so that the user waits once.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from maskmill import compilation
from maskmill.errors import RunFailedError
from pipelines.settings.source_options import MixOptions
from pipelines.settings.stage_options import (
    ExamplesOptions,
    ExtractOptions,
    VocabularyStageOptions,
    decided_masking,
)
from pipelines.terminal import console

OF_VERIFY = ("verification.kernels", "reading.kernels", "records.kernels.frames")
OF_READING = ("kernels.crc32c", "reading.kernels", "masking.kernels.row_masks", "records.kernels.frames")
OF_VOCABULARY = ("vocabularies.kernels", "tokenization.kernels")
# Of examples, whatever their options are.
OF_EXAMPLES = ("kernels", "tokenization.kernels", "masking.kernels", "records.kernels")

_BAR = 30  # characters


def of_extract(options: ExtractOptions, *, reads_pages: bool = True) -> Sequence[str]:
    """The kernels of a dump's pages, where one is read, and those of sentences."""
    of_text = ("characters", "sentences")
    if not reads_pages:
        return of_text
    ours = options.decided_extraction.extractor == "maskmill"
    return (*of_text, "inputs", "extraction.kernels.wikitext" if ours else "compat")


def expect(chosen: Sequence[Any], later: Sequence[str] = ()) -> None:
    """Says what a command will run, in case that a check already runs a kernel.

    Args:
      chosen: the options of stages.
      later: what else will run, as `prepare`.
    """
    compilation.before_first(lambda: prepare([*later, *(name for options in chosen for name in _expected(options))]))


def warm_up() -> None:
    """Compiles everything, removes what nobody has used for long, and says where machine code is."""
    from maskmill.kernels import cache, compiler

    start = time.monotonic()
    count = prepare(None)
    if removed := cache.remove_unused(time.time() - cache.KEPT_DAYS * 24 * 60 * 60):
        print(f"removed {removed} files that were not used for {cache.KEPT_DAYS} days")
    where = ", ".join(map(str, cache.cache_directories()))
    missing = [name for name in compiler.chosen_modules() if not cache.is_ready(name)]
    if missing:
        raise RunFailedError(f"Nothing can be kept in {where}; name another directory in NUMBA_CACHE_DIR.")
    took = f"compiled in {time.monotonic() - start:.0f} s" if count else "nothing to compile"
    print(f"{took}; machine code is in {where}")


def prepare(only: Sequence[str] | None) -> int:
    """Compiles what is not compiled yet, with a bar; returns how many modules of kernels were.

    only: whose kernels, as `maskmill.kernels.compiler.chosen_modules`; None: everything.
    """
    from maskmill.kernels import compiler

    stream = sys.stderr if isinstance(sys.stderr, console.Stream) and sys.stderr.isatty() else None
    if stream is None:
        return compiler.prepare(only)

    def show(done: int, count: int) -> None:
        filled = _BAR * done // count
        stream.pin([f"compiling {'━' * filled}{' ' * (_BAR - filled)} {done} of {count}"])

    try:
        return compiler.prepare(only, show)
    finally:
        stream.unpin()


def _expected(options: Any) -> Iterator[str]:
    if isinstance(options, MixOptions):
        for source in options.sources:
            yield from of_extract(source.extract)
    elif isinstance(options, ExtractOptions):
        yield from of_extract(options)
    elif isinstance(options, VocabularyStageOptions):
        yield from OF_VOCABULARY
    elif isinstance(options, ExamplesOptions):
        from maskmill.records.examples import kernels_of
        from maskmill.records.plan import ExamplesPlan

        masking = decided_masking(options.masking, options.compat)
        plan = ExamplesPlan(masking=masking, objective=options.objective, format=options.format)
        yield from kernels_of(plan, ("tokenization.kernels",)) if options.tokenizer_file else kernels_of(plan)
