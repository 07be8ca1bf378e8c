"""Page stores: a build that takes pages of the build before gives the same bytes, and takes all that did not change."""

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_runs.commands import digests
from data_sets.shard_builds import MANY_UNITS, ONE_UNIT, PLAIN, article, cut_batches, write_dump
from made_up import dump_files

from maskmill.storage.reuse import NOTHING, Reuse, Reused, read_reused, write_reuse
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.extract_stage import ExtractStage
from transforms.extraction.options import WikitextOptions
from transforms.extraction.template_library import bind_library, collect_templates
from transforms.shards import fragments, page_store
from transforms.shards.fragments import extract_batch
from transforms.shards.options import ExtractionOptions, QualityOptions, SplitOptions
from transforms.shards.planning import assemble_text_shard, plan_text_shards

EXPANDING = dataclasses.replace(PLAIN, wikitext=WikitextOptions(expand_templates=True))
REPORTING = dataclasses.replace(PLAIN, wikitext=WikitextOptions(report_templates=True))
FILTERING = dataclasses.replace(
    PLAIN, quality=QualityOptions(min_characters=40, drop_duplicates=True, min_duplicate_words=5), keep_titles=True
)
WIKIEXTRACTOR = dataclasses.replace(PLAIN, extractor="wikiextractor")

PAGES = [
    *[article(i, f"Town {i} lies on a river. " * (i % 4 + 1), f"It has {i} old bridges.") for i in range(1, 16)],
    dump_files.page(20, "Moved", "#REDIRECT [[Article 1]]", redirect="Article 1"),
    dump_files.page(21, "Talk:Article 1", "A remark.", namespace=1),
    dump_files.page(22, "Nothing", ""),
    article(23, "A BROKEN page."),
    dump_files.page(24, "Meanings", "It may mean:\n* [[One]]\n* [[Two]]\n{{disambiguation}}"),
    article(25, "He is {{age|1950|1|1}} years old, and the year is {{CURRENTYEAR}} as people say."),
    article(26, "This has {{some unknown|thing}} in it, and ({{other}}) brackets."),
    article(27, "The {{tower}} stands. It is {{high|30}} metres high."),
    article(28, "It is {{now}} that the town grows by the sea."),
    dump_files.page(90, "Template:Tower", "old tower", namespace=10),
    dump_files.page(91, "Template:High", "more than {{{1}}}", namespace=10),
    dump_files.page(92, "Template:Now", "the year {{CURRENTYEAR}}", namespace=10),
    article(99, "The last town lies by the sea."),
]


def make_dump(folder: Path, pages: Sequence[str]) -> Path:
    """Writes a dump of pages, one of which cannot be used."""
    folder.mkdir(parents=True)
    path = write_dump(folder, pages)
    path.write_bytes(path.read_bytes().replace(b"BROKEN", b"\xff"))
    return path


def build(
    dump: Path,
    output: Path,
    extraction: ExtractionOptions = PLAIN,
    *,
    taking: Reuse | None = None,
    date: str = "2010-01-02",
    unit_bytes: int = MANY_UNITS,
) -> Reused | None:
    """Makes text shards without Beam; returns what was taken."""
    options = ExtractOptions(
        input=(str(dump),),
        output=str(output),
        dump_date=date,
        extraction=extraction,
        split=SplitOptions(num_eval_articles=3, shard_size_mb=0.001),
    )
    stage = ExtractStage.check(options, is_first=True)
    stage.claim().write()
    reuse = taking or NOTHING
    if taking is not None:
        write_reuse(str(output), taking)
    decided = options.decided_extraction
    batches = cut_batches(dump, unit_bytes, date)
    if decided.wikitext.expand_templates:
        pieces = [collect_templates(batch, decided.reading, str(output), reuse.previous) for batch in batches]
        batches = bind_library(pieces, str(output), reuse.previous)
    fragments = [extract_batch(batch, decided, str(output), reuse) for batch in batches]
    plans = plan_text_shards(fragments, options.split.decided, decided, str(output), reuse.previous)
    shards = [assemble_text_shard(plan, {"": decided}, str(output), reuse.previous) for plan in plans]
    stage.close([*fragments, *shards])
    return read_reused(str(output))


@pytest.mark.parametrize(
    ("extraction", "unit_bytes"),
    [
        (EXPANDING, 500),
        *(
            pytest.param(extraction, unit_bytes, marks=pytest.mark.releases)
            for extraction in (PLAIN, EXPANDING, REPORTING, FILTERING, WIKIEXTRACTOR)
            for unit_bytes in (MANY_UNITS, 500)
            if (extraction, unit_bytes) != (EXPANDING, 500)
        ),
    ],
)
def test_a_build_with_reuse_is_the_same_as_one_without(
    extraction: ExtractionOptions, unit_bytes: int, tmp_path: Path
) -> None:
    before = make_dump(tmp_path / "before", PAGES)
    first = build(before, tmp_path / "first", extraction, taking=Reuse(keeps_pages=True))
    assert first is not None
    assert (first.reused_pages, first.reused_shards) == (0, 0)
    assert digests(tmp_path / "first") == digests_without(before, tmp_path, extraction)
    pages = [*PAGES[1:4], article(2001, "A town that is new."), *PAGES[5:]]
    pages[5] = pages[5].replace("old bridges", "new bridges").replace("<id>", "<id>5")
    dump = make_dump(tmp_path / "now", pages)
    taking = Reuse(previous=str(tmp_path / "first"), keeps_pages=True)
    second = build(dump, tmp_path / "second", extraction, taking=taking, date="2011-03-04", unit_bytes=unit_bytes)
    assert second is not None
    assert second.reused_pages > 0.5 * second.pages
    build(dump, tmp_path / "full", extraction, date="2011-03-04", unit_bytes=unit_bytes)
    assert digests(tmp_path / "second") == digests(tmp_path / "full")


def digests_without(dump: Path, folder: Path, extraction: ExtractionOptions) -> dict[str, str]:
    """The files of a build that keeps no pages."""
    assert build(dump, folder / "without", extraction) is None
    return digests(folder / "without")


@pytest.mark.releases
def test_pages_that_ask_for_the_date_are_taken_on_the_same_day_alone(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", PAGES)
    asking = {PLAIN: {25}, EXPANDING: {25, 28}, WIKIEXTRACTOR: {25}}
    for number, (extraction, dated) in enumerate(asking.items()):
        first = tmp_path / f"first-{number}"
        made = build(dump, first, extraction, taking=Reuse(keeps_pages=True))
        assert made is not None
        # Other units, so that no piece is taken whole.
        for date, lost in (("2010-01-02", 0), ("2010-01-03", len(dated))):
            taking = Reuse(previous=str(first))
            output = tmp_path / f"{number}-{date}"
            again = build(dump, output, extraction, taking=taking, date=date, unit_bytes=450)
            assert again is not None
            assert (again.pages, again.pages - again.reused_pages) == (made.pages, lost)


@pytest.mark.releases
def test_a_template_that_changes_has_the_pages_that_use_it_extracted(tmp_path: Path) -> None:
    build(make_dump(tmp_path / "dump", PAGES), tmp_path / "first", EXPANDING, taking=Reuse(keeps_pages=True))
    changes = {
        "another text": {"old tower": "tall tower"},
        "gone": {"Template:Tower": "Template:Spire"},
        "a redirect to another": {"old tower": "#REDIRECT [[Template:High]]"},
        "new": {"Template:Now": "Template:Some unknown"},
    }
    for name, replaced in changes.items():
        pages = list(PAGES)
        for old, new in replaced.items():
            pages = [page.replace(old, new) if "<ns>10<" in page else page for page in pages]
        dump = make_dump(tmp_path / name, pages)
        output = tmp_path / f"taking {name}"
        taken = build(dump, output, EXPANDING, taking=Reuse(previous=str(tmp_path / "first"), keeps_pages=True))
        build(dump, tmp_path / f"full {name}", EXPANDING)
        assert digests(output) == digests(tmp_path / f"full {name}")
        assert taken is not None
        # One page uses the template, or two: the one that is gone, and the one that is new.
        assert taken.pages - taken.reused_pages == (2 if name == "new" else 1)


@pytest.mark.releases
@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(PLAIN, wikitext=WikitextOptions(headings="keep")),
        dataclasses.replace(PLAIN, wikitext=WikitextOptions(rules_text="[rules]\nsome unknown = {1}")),
        dataclasses.replace(PLAIN, keep_disambiguation=True),
        EXPANDING,
        WIKIEXTRACTOR,
    ],
)
def test_nothing_is_taken_where_other_options_decide_the_text(other: ExtractionOptions, tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", PAGES)
    build(dump, tmp_path / "first", taking=Reuse(keeps_pages=True))
    taken = build(dump, tmp_path / "second", other, taking=Reuse(previous=str(tmp_path / "first")))
    assert taken is not None
    assert taken.reused_pages == 0
    build(dump, tmp_path / "full", other)
    assert digests(tmp_path / "second") == digests(tmp_path / "full")


@pytest.mark.releases
def test_filters_and_languages_may_differ(tmp_path: Path) -> None:
    """What follows the text of a page is done again, so its options may differ."""
    dump = make_dump(tmp_path / "dump", PAGES)
    made = build(dump, tmp_path / "first", taking=Reuse(keeps_pages=True))
    other = dataclasses.replace(FILTERING, language="german", random_seed=3)
    taken = build(dump, tmp_path / "second", other, taking=Reuse(previous=str(tmp_path / "first")))
    build(dump, tmp_path / "full", other)
    assert made is not None
    assert taken is not None
    assert taken.reused_pages == taken.pages == made.pages
    assert digests(tmp_path / "second") == digests(tmp_path / "full")


def change(pages: Sequence[str], number: int, **replaced: str) -> list[str]:
    """The pages; of the one with a title some text is replaced."""
    return [
        re.sub(replaced["old"], replaced["new"], page, count=1) if f"<title>Article {number}<" in page else page
        for page in pages
    ]


@pytest.mark.releases
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lies on", "stands on"),  # under the same revision: a text that was suppressed
        ("<revision>\n      <id>4000<", "<revision>\n      <id>4001<"),
        ("<title>Article 4<", "<title>Article four<"),
        ("<model>wikitext<", "<model>text<"),
        ("<id>4<", "<id>4000000<"),
    ],
)
def test_a_page_that_differs_in_any_way_is_extracted(old: str, new: str, tmp_path: Path) -> None:
    build(make_dump(tmp_path / "dump", PAGES), tmp_path / "first", taking=Reuse(keeps_pages=True))
    pages = change(PAGES, 4, old=old, new=new)
    assert pages != PAGES
    dump = make_dump(tmp_path / "now", pages)
    taken = build(dump, tmp_path / "second", taking=Reuse(previous=str(tmp_path / "first")))
    build(dump, tmp_path / "full")
    assert digests(tmp_path / "second") == digests(tmp_path / "full")
    assert taken is not None
    assert taken.pages - taken.reused_pages == (0 if "<model>" in old else 1)


@pytest.mark.releases
def test_pages_in_no_order_and_pages_that_are_there_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = [*reversed(PAGES), article(7, "Another text under the same number."), *PAGES[:3]]
    first = make_dump(tmp_path / "dump", doubled)
    build(first, tmp_path / "first", taking=Reuse(keeps_pages=True))
    dump = make_dump(tmp_path / "now", [*doubled[5:], *doubled[:5]])
    build(dump, tmp_path / "full")
    shares = []
    for openings in (0, 100):  # of stores: where they are few, the rest is extracted
        monkeypatch.setattr(page_store, "_FREE_OPENINGS", openings)
        page_store.page_reader.cache_clear()
        output = tmp_path / f"second {openings}"
        taken = build(dump, output, taking=Reuse(previous=str(tmp_path / "first")))
        assert digests(output) == digests(tmp_path / "full")
        assert taken is not None
        shares.append(taken.reused_pages / taken.pages)
    assert shares == [0, 1]


def stores(output: Path) -> list[Path]:
    return sorted(output.rglob("*.pages"))


@pytest.mark.releases
def test_a_damaged_store_is_not_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever byte of a store is damaged, its pages are extracted, or taken as they were."""
    dump = make_dump(tmp_path / "dump", PAGES)
    build(dump, tmp_path / "first", EXPANDING, taking=Reuse(keeps_pages=True), unit_bytes=ONE_UNIT)
    build(dump, tmp_path / "full", EXPANDING, date="2012-01-02", unit_bytes=450)
    (store,) = stores(tmp_path / "first")
    content = store.read_bytes()
    damages = [b"", content[:10], content[:-1], content + b"x"]
    for place in range(0, len(content), len(content) // 12):
        damages.append(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
    for number, damage in enumerate(damages):
        store.write_bytes(damage)
        page_store.page_reader.cache_clear()
        output = tmp_path / f"second {number}"
        taken = build(
            dump, output, EXPANDING, taking=Reuse(previous=str(tmp_path / "first")), date="2012-01-02", unit_bytes=450
        )
        assert digests(output) == digests(tmp_path / "full")
        assert taken is not None
        # What is behind the end is not looked at.
        assert (taken.reused_pages == 0) == (number != damages.index(content + b"x"))
    assert caplog.text.count("this page store cannot be used (it is damaged)") == len(damages) - 1
    store.unlink()
    page_store.page_reader.cache_clear()
    taken = build(dump, tmp_path / "gone", EXPANDING, taking=Reuse(previous=str(tmp_path / "first")), date="2012-01-02")
    assert taken is not None
    assert taken.reused_pages == 0


@pytest.mark.releases
def test_the_next_build_may_take_from_one_that_took(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", PAGES)
    build(dump, tmp_path / "first", taking=Reuse(keeps_pages=True))
    for number, (before, unit_bytes) in enumerate([("first", 450), ("0", 600), ("1", 700)]):
        taking = Reuse(previous=str(tmp_path / before), keeps_pages=True)
        taken = build(dump, tmp_path / str(number), taking=taking, date="2012-01-02", unit_bytes=unit_bytes)
        assert taken is not None
        assert taken.pages - taken.reused_pages == (0 if number else 1)  # the page that shows the date


@pytest.mark.releases
def test_stores_of_another_version_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = make_dump(tmp_path / "dump", PAGES)
    build(dump, tmp_path / "first", taking=Reuse(keeps_pages=True))
    monkeypatch.setattr(page_store, "VERSION", page_store.VERSION + 1)
    page_store.page_reader.cache_clear()
    taken = build(dump, tmp_path / "second", taking=Reuse(previous=str(tmp_path / "first")), unit_bytes=450)
    assert taken is not None
    assert taken.reused_pages == 0


@pytest.mark.releases
def test_rows_of_stores_from_before_calls_were_expanded() -> None:
    earlier = np.dtype([column for column in page_store.ROW.descr if column[0] in page_store._FIRST_COLUMNS])
    kept = np.zeros(2, earlier)
    kept["page"], kept["known_calls"], kept["templates_end"] = (3, 4), 5, 6
    rows = page_store._rows_of(kept.tobytes(), page_store._FIRST_COLUMNS)
    assert rows.dtype == page_store.ROW
    assert rows["page"].tolist() == [3, 4]
    assert rows["known_calls"].tolist() == [5, 5]
    assert rows["expanded_calls"].tolist() == [0, 0]
    assert rows["templates_end"].tolist() == [6, 6]


def test_a_damaged_account_or_index_counts_as_none(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", PAGES)
    build(dump, tmp_path / "first", taking=Reuse(keeps_pages=True))
    for path in (tmp_path / "first" / ".maskmill" / "pages").iterdir():
        path.write_bytes(path.read_bytes().replace(b"first", b"frist"))
    page_store.page_reader.cache_clear()
    taken = build(dump, tmp_path / "second", taking=Reuse(previous=str(tmp_path / "first")), unit_bytes=450)
    assert taken is not None
    assert taken.reused_pages == 0


@pytest.mark.releases
def test_a_record_that_names_other_paths_is_not_taken(tmp_path: Path) -> None:
    """rejected.jsonl names the input: a dump that lies elsewhere now must be named there."""
    build(make_dump(tmp_path / "dump", PAGES), tmp_path / "first", taking=Reuse(keeps_pages=True))
    moved = make_dump(tmp_path / "moved", PAGES)
    taken = build(moved, tmp_path / "second", taking=Reuse(previous=str(tmp_path / "first")))
    assert taken is not None
    assert taken.reused_pages == taken.pages
    (rejected,) = (json.loads(line) for line in (tmp_path / "second" / "rejected.jsonl").read_text().splitlines())
    assert rejected["input"] == str(moved)


def test_the_same_dump_again_is_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = make_dump(tmp_path / "dump", PAGES)
    first = build(dump, tmp_path / "first", FILTERING, taking=Reuse(keeps_pages=True))
    assert first is not None
    monkeypatch.setattr(fragments, "_write_fragment", None)  # nothing is extracted
    taking = Reuse(previous=str(tmp_path / "first"), keeps_pages=True)
    second = build(dump, tmp_path / "second", FILTERING, taking=taking)
    assert second == dataclasses.replace(
        first, previous=str(tmp_path / "first"), reused_pages=first.pages, reused_shards=first.shards
    )
    assert digests(tmp_path / "second") == digests(tmp_path / "first")
    assert (tmp_path / "second" / "eval.txt").stat().st_ino == (tmp_path / "first" / "eval.txt").stat().st_ino
    assert [path.name for path in stores(tmp_path / "second")] == [path.name for path in stores(tmp_path / "first")]
