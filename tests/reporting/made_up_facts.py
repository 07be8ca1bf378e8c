"""Facts of data sets that there are none of: for pages with whatever a test wants on them."""

import dataclasses
from typing import Any

from maskmill.inspection.decoding import DecodedExample, DecodedPiece
from maskmill.reporting.facts import Facts
from maskmill.reporting.input_documents import Documents, SetAside
from maskmill.reporting.made_from import Input, Option
from maskmill.reporting.measured import TextFacts
from maskmill.reporting.samples import Samples, SampleText


def made_up_facts(text: str = "text", **others: Any) -> Facts:
    """Facts with `text` wherever a page shows what others wrote: names, titles, options, lines and pieces."""
    piece = DecodedPiece(position=0, id=7, text=text, role="random", label=text, surface=text)
    kinds = ("text", "special", "masked", "kept")
    pieces = tuple(dataclasses.replace(piece, role=role) for role in kinds)
    example = DecodedExample(file=text, record=1, sample=0, pieces=(piece, *pieces), width=8, label=text)
    texts = TextFacts(characters=4, markup=0, repeated=((2, text),))
    facts = Facts(
        name=text,
        path=text,
        steps=((text, text),),
        figures=(),
        inputs=(Input(path=text, bytes=3, sha256="0" * 64),),
        options=(Option(stage="Text", name=text, value=text),),
        versions={"maskmill": "0", text: text},
        dump_date=text,
        documents=Documents(read=3, set_aside=(SetAside(text, 1, (text,)),), train=1, eval=1, languages=(text,)),
        places={},
        rows={},
        texts={"train": texts},
        timings=(),
        verification=None,
        checks={},
        shards="",
        samples=Samples(texts=(SampleText(file=text, lines=(text[:400],), more=None),), examples=(example,)),
    )
    return dataclasses.replace(facts, **others)
