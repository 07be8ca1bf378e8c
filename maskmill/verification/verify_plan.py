"""Plan the work items of a verification: one for each file, and one for each shard that is made again."""

import contextlib
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataFile
from maskmill.reading.record_indexes import first_example
from maskmill.reading.remote import open_ranges
from maskmill.records import shard_formats
from maskmill.storage import files
from maskmill.storage.paths import is_web
from maskmill.text.lookalikes import no_text_shard
from maskmill.text.text_files import kind_of_text
from maskmill.verification.directory_checks import check_directory, check_mds_indexes, check_numbers
from maskmill.verification.findings import Checked, combined, finding, skipped
from maskmill.verification.listed_shards import ListedFile
from maskmill.verification.options import VerifyOptions, shard_numbers
from maskmill.verification.remaking_checks import plan_remakes, text_of_shard
from maskmill.verification.row_rules import RowRules, plan_of, rules_of_file, rules_of_plan, rules_of_records, schema_of
from maskmill.verification.verify_targets import Target, VerifyPlan, may_be_data
from maskmill.verification.vocabulary_checks import KnownPieces, find_vocabulary, load_named
from maskmill.verification.work_items import ItemKind, WorkItem

_NUMBER = re.compile(r"-(\d+)-of-(\d+)")


def plan(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> VerifyPlan:
    """Return the targets with their work items and the findings about manifests, directories and vocabularies.

    Args:
      targets: of `verify_targets.find_targets`.
      options: of the verification.
      scratch: a directory that all workers can use.

    Raises:
      UnusableInputError: the user named a vocabulary that cannot be used, or shards that do not exist.
    """
    planned = []
    for target in targets:
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            planned.append(_Planner(target, options, scratch, ranges).plan())
    if options.shards is not None and not any(target.items for target in planned):
        raise UnusableInputError(
            f"--shards {options.shards}: there are no such shards; see the numbers in their names."
        )
    planned = plan_remakes(_with_other_texts(planned), options, scratch)
    return VerifyPlan(targets=tuple(planned), options=options, scratch=scratch)


def _with_other_texts(targets: Sequence[Target]) -> list[Target]:
    """Return the targets; work items of training text get the paths of all eval and training text."""
    text = [item for target in targets for item in target.items if item.kind == "text"]
    evals, trained = (tuple(p.path for p in text if p.split == split) for split in ("eval", "train"))

    def with_texts(item: WorkItem) -> WorkItem:
        is_trained = (item.kind, item.split) == ("text", "train")
        return dataclasses.replace(item, eval_texts=evals, train_texts=trained) if is_trained else item

    return [dataclasses.replace(target, items=tuple(map(with_texts, target.items))) for target in targets]


class _Planner:
    """Plan the work items of one target."""

    def __init__(self, target: Target, options: VerifyOptions, scratch: str, ranges: ByteRanges) -> None:
        self._target, self._options, self._scratch, self._ranges = target, options, scratch, ranges
        self._chosen = None if options.shards is None else shard_numbers(options.shards)

    def plan(self) -> Target:
        made = self._target.made
        return self._plan_files() if made is None else self._plan_made(made)

    def _is_chosen(self, number: int) -> bool:
        return self._chosen is None or any(number in chosen for chosen in self._chosen)

    def _item(self, kind: ItemKind, path: str, split: str, shard: int, expected: ListedFile, **more: Any) -> WorkItem:
        return WorkItem(
            kind=kind,
            path=path,
            split=split,
            shard=shard,
            directory=self._target.directory,
            expected=expected,
            scratch=self._scratch,
            **more,
        )

    # ---- with a manifest

    def _plan_made(self, made: Mapping[str, Any]) -> Target:
        target, checks, known = self._target, [self._target.checked], KnownPieces()
        if not target.named:
            checks.append(check_directory(target, target.shards))
        kept = [shard for shard in target.shards if self._is_chosen(shard.number)]
        listed = [
            (shard, dataclasses.replace(file, index=file.index and target.file(file.index)), target.file(file.name))
            for shard in kept
            for file in shard.files
        ]
        named = {_normal(name) for name in target.named}
        listed = [entry for entry in listed if not named or _normal(entry[2]) in named]
        if target.kind in ("text", "vocabulary"):
            kind: ItemKind = "text" if target.kind == "text" else "other"
            items = [self._item(kind, path, shard.kind, shard.number, file) for shard, file, path in listed]
        else:
            rules, known, found = self._rules(made)
            checks += [*found, check_mds_indexes(target, self._ranges) if not target.named else Checked()]
            format, items = made.get("format", "tfrecord"), []
            for shard, expected, path in listed:
                text = None
                if shard_formats.format_of(format).reads_text:
                    text = text_of_shard(shard, target, self._options, may_differ=True)
                own = rules and _of_file(rules, path, expected, text)
                items.append(self._item("examples", path, shard.kind, shard.number, expected, rules=own))
        return dataclasses.replace(
            target,
            items=tuple(items),
            checked=combined(checks),
            known=dataclasses.replace(known, vocabulary=None),
        )

    def _rules(self, made: Mapping[str, Any]) -> tuple[RowRules | None, KnownPieces, list[Checked]]:
        """Return the rules of rows, by the manifest and the vocabulary; None if an option is invalid."""
        directory, do = self._target.directory, "put back the manifest that was written with the data"
        known, checked = find_vocabulary(made, directory, self._options.vocab_file, self._ranges)
        problem = None
        try:
            plan = plan_of(made)
            rules = rules_of_plan(plan, known, directory)
        except UnusableInputError as error:
            rules, problem = None, f"its options cannot be: {str(error).rstrip('.')}"
        else:
            entries = made.get("schema", [])
            listed = [(e.get("name"), e.get("dtype"), e.get("shape")) if isinstance(e, dict) else e for e in entries]
            expected = [tuple(entry.values()) for entry in schema_of(plan, known)]
            if "schema" in made and known.vocabulary is not None and listed != expected:
                first = next((entry for entry in expected if entry not in listed), "fewer columns")
                problem = f"its schema is not that of its options: {first} belongs there"
            elif made.get("format") != (made["parameters"].get("format") or made.get("format")):
                problem = f"its format is {made.get('format')}, but its options say another"
        findings = [] if problem is None else [finding("manifest", self._target.manifest_path, f"{problem}; {do}")]
        return rules, known, [checked, Checked(findings=findings)]

    # ---- files without a manifest

    def _plan_files(self) -> Target:
        """Plan files without a manifest; the first record of each gives the rules of its rows."""
        target, checks, known = self._target, [self._target.checked], KnownPieces()
        everything = target.named or [path for path in files.list_directory(target.directory) if may_be_data(path)]
        numbered = [(path, _NUMBER.search(files.base_name(path))) for path in everything]
        numbers = [(path, int(found[1]) if found else place) for place, (path, found) in enumerate(numbered)]
        kept = [(path, number) for path, number in numbers if self._is_chosen(number)]
        if target.is_whole:
            checks.append(check_numbers(everything, target.directory))
        if target.kind == "examples":
            if self._options.vocab_file is not None:
                known = load_named(self._options.vocab_file)
            else:
                checks.append(skipped("no vocabulary is named with --vocab_file", "vocabulary"))
        items = tuple(self._loose_item(path, number, known) for path, number in kept)
        return dataclasses.replace(
            target,
            items=items,
            checked=combined(checks),
            known=dataclasses.replace(known, vocabulary=None),
        )

    def _loose_item(self, path: str, number: int, known: KnownPieces) -> WorkItem:
        split = self._options.split or kind_of_text(path)
        if self._target.kind == "text":
            return self._item("text", path, split, number, ListedFile(), unusable=_no_shard(path))
        rules = unusable = None
        try:
            if shard_formats.needs_manifest(path):
                raise UnusableInputError("only TFRecords can be verified without a manifest")
            features = first_example(path, self._ranges)
            if not features:
                raise UnusableInputError("there is no example in this file")
            rules = _of_file(rules_of_records(features, self._options, known, path), path, ListedFile())
        except (UnusableInputError, RunFailedError) as error:
            unusable = str(error).removeprefix(f"{path}: ").rstrip(".")
        return self._item("examples", path, split, number, ListedFile(), rules=rules, unusable=unusable)


def _of_file(rules: RowRules, path: str, file: ListedFile, text: str | None = None) -> RowRules:
    """Return the rules of a file."""
    of_file = DataFile(
        path=path,
        samples=file.examples or 0,
        size=file.size,
        sha256=file.sha256,
        index=file.index,
        width=file.width or rules.data_set.width,
        text=text,
    )
    return rules_of_file(rules, of_file)


def _no_shard(path: str) -> str | None:
    """Return why a file is not a text shard; None if it may be one, or if it must be read to know."""
    if is_web(path):
        return None
    try:
        what = no_text_shard(path)
    except (UnusableInputError, RunFailedError):
        return None
    return None if what is None else f"this is {what}, but no text shard; name text shards or examples"


def _normal(path: str) -> str:
    return re.sub(r"(?<!:)/+", "/", path).removeprefix("./")
