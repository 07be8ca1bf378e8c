"""What the examples of a sample say about more text, cut into more or fewer documents."""

import random

import pytest
from command_runs.commands import VOCAB

from maskmill.masking.options import MaskingOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tokenizing import wordpiece
from maskmill.tokenization.vocabulary import load_vocabulary
from transforms.examples.estimating import examples_of

pytestmark = pytest.mark.builds


def documents(count: int) -> list[bytes]:
    draws = random.Random(1)
    words = ["the", "of", "and", "to", "in", "is", "was", "he", "for", "it"]
    return [
        b"".join(b" ".join(w.encode() for w in draws.choices(words, k=12)) + b"\n" for _ in range(draws.randint(3, 30)))
        + b"\n"
        for _ in range(count)
    ]


def test_examples_follow_the_documents_as_well_as_the_text() -> None:
    plan = ExamplesPlan(masking=MaskingOptions(dupe_factor=5))
    loaded = wordpiece(load_vocabulary(str(VOCAB)), plan.masking)
    made = documents(200)
    joined = [a[:-1] + b for a, b in zip(made[::2], made[1::2], strict=True)]
    apart, together = (examples_of(one, loaded, plan, packed=False) for one in (made, joined))
    assert (apart.documents, together.documents) == (200, 100)
    assert apart.tokens == together.tokens
    assert apart.examples > 1.1 * together.examples
    for found, more in ((apart, -100), (together, 100)):
        other = together if found is apart else apart
        assert found.examples + more * found.of_document[0] == pytest.approx(other.examples, rel=0.04)
        assert found.pieces + more * found.of_document[1] == pytest.approx(other.pieces, rel=0.04)
    alone = examples_of(made[:1], loaded, plan, packed=False)
    assert alone.of_document == (0, 0)
