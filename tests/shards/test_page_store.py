"""Page stores: a build that takes pages of the build before gives the same bytes, and takes all that did not change."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import dump_files
import pytest
from commands import digests
from shard_builds import MANY_UNITS, PLAIN, article, cut_batches, write_dump

from pipelines import checks
from pipelines.extract import ExtractStage
from pipelines.stage_options import ExtractOptions
from transforms.extraction.options import WikitextOptions
from transforms.extraction.template_library import bind_library, collect_templates
from transforms.shards.assembling import assemble_text_shard
from transforms.shards.fragments import extract_batch
from transforms.shards.options import ExtractionOptions, QualityOptions, SplitOptions
from transforms.shards.planning import plan_text_shards
from transforms.storage.reuse import Reuse, Reused, read_reused, write_reuse

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
    stage = ExtractStage.of(checks.extract(options, is_first=True))
    stage.claim().write()
    if taking is not None:
        write_reuse(str(output), taking)
    decided = options.decided_extraction
    batches = cut_batches(dump, unit_bytes, date)
    if decided.wikitext.expand_templates:
        batches = bind_library([collect_templates(b, decided.reading, str(output)) for b in batches], str(output))
    fragments = [extract_batch(batch, decided, str(output)) for batch in batches]
    plans = plan_text_shards(fragments, options.split.decided, decided, str(output))
    shards = [assemble_text_shard(plan, {"": decided}, str(output)) for plan in plans]
    stage.close([*fragments, *shards])
    return read_reused(str(output))


def changed(pages: Sequence[str], **texts: str) -> list[str]:
    """The pages with other content, of the pages whose titles are named, and another revision."""
    return [texts.get(f"page_{number}", page) for number, page in enumerate(pages)]


@pytest.mark.parametrize("unit_bytes", [MANY_UNITS, 500])
@pytest.mark.parametrize("extraction", [PLAIN, EXPANDING, REPORTING, FILTERING, WIKIEXTRACTOR])
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
