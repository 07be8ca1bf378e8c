"""release.json makes a release complete, says what it was made of, and never changes."""

import dataclasses
import hashlib
import json

import pytest
from release_runs import roots as release_roots
from release_runs.roots import make_release, name_of, record_of

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import records
from maskmill.releases.names import RECORD, ReleaseName, release_path
from maskmill.storage import conditional, files

pytest_plugins = ("release_runs.fixtures",)

NAME = name_of("2026-11-01")
FULL = records.ReleaseRecord(
    name=NAME,
    config={"extract": {"input": ["dump.xml.bz2"], "seed": 1}, "train": None},
    inputs=[{"path": "dump.xml.bz2", "bytes": 3, "sha256": "ab", "url": "https://…"}],
    dump={"wiki": "enwiki", "date": "2026-11-01", "layout": "content", "files": []},
    stages={
        "extract": {"directory": "text", "manifest_sha256": "01", "fingerprint": ""},
        "examples": {"directory": "train", "manifest_sha256": "02", "fingerprint": "03"},
    },
    versions={"formats": {"text": 1}},
)


def test_a_record_of_an_earlier_version_is_read(root: str) -> None:
    """They said more."""
    fields = json.loads(dataclasses.replace(FULL, finished="2026-11-01").encode())
    del fields["record_sha256"]
    fields |= {"previous": "enwiki-2026-10-01-00000000", "reused": {}, "made_by": {}}
    content = json.dumps(fields, sort_keys=True, ensure_ascii=False, indent=1)
    fields["record_sha256"] = hashlib.sha256(content.encode()).hexdigest()
    files.write_bytes(files.join(release_path(root, NAME), RECORD), json.dumps(fields).encode())
    assert records.read_record(release_path(root, NAME)) == dataclasses.replace(FULL, finished="2026-11-01")


def test_a_record_is_read_as_it_was_written_and_stays(root: str) -> None:
    release_roots.make_files(root, NAME)
    assert records.read_record(release_path(root, NAME)) is None
    first = records.write_record(root, FULL)
    assert first.finished.startswith("20")
    assert first == dataclasses.replace(FULL, finished=first.finished)
    assert records.write_record(root, FULL) == first
    other = dataclasses.replace(FULL, stages={"extract": {"directory": "text", "manifest_sha256": "09"}})
    with pytest.raises(RunFailedError, match="complete already, with other content"):
        records.write_record(root, other)
    assert records.read_record(release_path(root, NAME)) == first


def test_the_fingerprint_is_of_the_manifests_of_data() -> None:
    def with_stages(**digests: str) -> str:
        stages = {name: {"directory": name, "manifest_sha256": digest} for name, digest in digests.items()}
        return records.fingerprint(dataclasses.replace(FULL, stages=stages, finished=str(digests)))

    same = with_stages(extract="1", examples="2")
    assert with_stages(examples="2", extract="1") == with_stages(extract="1", examples="2", train="3") == same
    assert len({same, with_stages(extract="1"), with_stages(extract="1", examples="1")}) == 3


def test_every_damaged_byte_is_found(root: str) -> None:
    content = dataclasses.replace(FULL, finished="now").encode()
    path = files.join(release_path(root, NAME), RECORD)
    version = None
    places = range(2, len(content) - 2, 1 if files.is_local(root) else 97)
    damaged = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places]
    if files.is_local(root):  # the rest reads bytes, wherever they are
        assert all(records._decode(one) is None for one in damaged if one != content)
    for one in (damaged[0], content[:-20], b"", b"[]"):
        version = conditional.write(path, one, expected=version)
        with pytest.raises(UnusableInputError, match=r"release\.json: this record is damaged; delete the release"):
            records.read_record(release_path(root, NAME))


def test_what_is_complete_and_what_is_not(root: str) -> None:
    assert records.complete_releases(root) == []
    assert records.unfinished_releases(root) == []
    names = [
        make_release(root, *of) for of in [("2026-12-01",), ("2026-11-01", "ffffffff"), ("2026-11-01", "00000000")]
    ]
    begun = [name_of("2026-12-01", "11111111"), name_of("2026-09-01")]
    for name in begun:
        release_roots.make_files(root, name)
    files.write_bytes(files.join(root, "releases/notes/readme.txt"), b"")
    files.write_bytes(files.join(root, "releases/.state/enwiki-2026-01-01-00000000.lock"), b"")
    # By the date of the dump, then in the order in which they were completed.
    assert [record.name for record in records.complete_releases(root)] == [names[1], names[2], names[0]]
    assert records.unfinished_releases(root) == [begun[1], begun[0]]
    assert len(records.all_names(root)) == 5


def test_a_record_that_was_killed_at_any_moment(root: str) -> None:
    operation, killed = 0, True
    while killed:
        name = ReleaseName(wiki=f"wiki{operation}", date="2026-11-01", digest="0" * 8)
        release_roots.make_files(root, name)
        record = dataclasses.replace(record_of(name), finished="now")

        def write(record: records.ReleaseRecord = record) -> None:
            records.write_record(root, record)

        killed = release_roots.killed_before(operation, write)
        assert records.read_record(release_path(root, name)) in (None, record)
        write()
        assert records.read_record(release_path(root, name)) == record
        operation += 1
    assert operation > 1


def test_other_stores_have_no_releases() -> None:
    with pytest.raises(UnusableInputError, match="releases need a local disk, gs:// or s3://"):
        records.all_names("hdfs://host/root")
