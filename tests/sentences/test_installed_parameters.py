"""The parameters of a language among NLTK's data count by their content."""

import hashlib
from pathlib import Path

import nltk.data
import pytest

from maskmill.sentences.punkt import installed_checksum
from pipelines.commands import cli

FILES = {
    "collocations.tab": "z\tb\n",
    "ortho_context.tab": "haus\t2\n",
    "abbrev_types.txt": "z.b\n",
    "sent_starters.txt": "der\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    folder = tmp_path / "tokenizers" / "punkt_tab" / "maskmillish"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return folder


def test_every_file_counts(folder: Path) -> None:
    before = installed_checksum("maskmillish")
    assert before == hashlib.sha256("\0".join(FILES.values()).encode()).hexdigest()
    found = {before}
    for name in FILES:
        (folder / name).write_text(FILES[name] + "x\t1\n")
        found.add(installed_checksum("maskmillish"))
    assert len(found) == 1 + len(FILES)


def test_what_comes_with_the_package_or_is_not_there_has_none(folder: Path) -> None:
    assert installed_checksum("english") is None
    assert installed_checksum("elvish") is None
    assert installed_checksum("../english") is None


@pytest.mark.builds
@pytest.mark.long
def test_a_second_run_with_an_installed_language_finds_the_first(folder: Path, tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("Ein Satz. Noch einer.\n")
    command = ["extract", f"--input={book}", f"--output={tmp_path}/out", "--language=maskmillish", "--workers=1"]
    assert [cli.main(command), cli.main(command)] == [0, 0]
    (folder / "sent_starters.txt").write_text("die\n")
    assert cli.main(command) == 2
