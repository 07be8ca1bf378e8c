"""WikiExtractor's text, against what WikiExtractor itself wrote of the sample dump and of small pages."""

import gzip
from pathlib import Path

from transforms import dump, files
from transforms.wikiextractor import WikiExtractorCompat, format_document, pack_files

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "dump" / "enwiki-sample-multistream.xml.bz2"
# The clock when WikiExtractor wrote the gold: two articles of the sample say what year it is.
EXTRACTOR = WikiExtractorCompat("2026-11-21")


def extract(text: str, title: str = "Title") -> str:
    return EXTRACTOR.extract(title.encode(), text.encode()).decode()


def test_the_sample_dump_gives_the_very_files_of_wikiextractor() -> None:
    header = dump.read_header(str(SAMPLE))
    documents = []
    for unit in dump.plan_units([files.FileInfo(path=str(SAMPLE), size=SAMPLE.stat().st_size)]):
        for page in dump.read_unit(unit, dump.ReadOptions()):
            assert isinstance(page, dump.Page)
            if page.namespace == 0 and not page.is_redirect:
                text = EXTRACTOR.extract(page.title, page.text)
                documents.append(format_document(page.page_id, dump.site_base(header), page.title, text))
    packed = pack_files([len(document) for document in documents])
    expected = [gzip.decompress((DATA / "gold" / "wikiextractor" / f"wiki_0{i}.gz").read_bytes()) for i in range(3)]
    assert [b"".join(documents[index] for index in file) for file in packed] == expected
