"""The dump that benchmarks/incremental.py makes of another one."""

import bz2
from pathlib import Path

from made_up import dump_files

from benchmarks.incremental import next_dump
from maskmill.storage import files
from transforms.inputs.mediawiki import Page
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import plan_units, read_unit


def pages_of(path: Path) -> dict[int, Page]:
    """The pages of a dump by their ids; each must be usable and there once."""
    units = plan_units([files.FileInfo(path=str(path), size=path.stat().st_size)])
    pages = [page for unit in units for page in read_unit(unit, ReadOptions())]
    found = {page.page_id: page for page in pages if isinstance(page, Page)}
    assert len(found) == len(pages)
    return found


def test_the_next_dump_has_the_changes_that_it_says(tmp_path: Path) -> None:
    dump = tmp_path / "dump.xml"
    dump.write_bytes(dump_files.dump([dump_files.page(k, f"Page {k}", f"Text {k}.\n\nMore.") for k in range(1, 301)]))
    packed = tmp_path / "dump.xml.bz2"
    packed.write_bytes(bz2.compress(dump.read_bytes()))
    for number, source in enumerate((dump, packed)):
        made = next_dump(source, tmp_path / f"next-{number}.xml.bz2", (0.02, 0.01, 0.03))
        assert made == {"pages": 300, "edited": 6, "added": 3, "deleted": 9}
    assert (tmp_path / "next-0.xml.bz2").read_bytes() == (tmp_path / "next-1.xml.bz2").read_bytes()
    before, after = pages_of(dump), pages_of(tmp_path / "next-0.xml.bz2")
    assert len(before.keys() - after.keys()) == 9
    assert sorted(after.keys() - before.keys()) == [301, 302, 303]
    edited = [number for number in before.keys() & after.keys() if before[number] != after[number]]
    assert len(edited) == 6
    for number in edited:
        assert after[number].revision_id > before[number].revision_id
        assert after[number].text == b"Text %d. This sentence was added to the page later.\n\nMore." % number
