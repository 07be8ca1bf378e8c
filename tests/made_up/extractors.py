"""Extractors and their tables, made when they are asked for and once in a process: one takes a tenth of a second."""

import functools
from typing import Any

from maskmill.extraction.kernels.tables import Tables
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site


@functools.cache
def extractor_of(language: str = "en", **options: Any) -> WikitextExtractor:
    """The extractor of a language, which knows nothing else of its site, with some options."""
    return WikitextExtractor(Site(language=language), WikitextOptions(**options))


def tables_of(language: str = "en") -> Tables:
    """The tables of a language's extractor with default options."""
    return extractor_of(language)._tables
