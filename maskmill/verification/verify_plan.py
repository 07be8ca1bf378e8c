"""Which pieces of work a verification has: one for each file, and one for each shard that is made again."""

import concurrent.futures
import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
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
from maskmill.verification.directory_checks import check_directory, check_listings, check_numbers, has_all_shards
from maskmill.verification.file_checks import check_file
from maskmill.verification.findings import Checked, finding, joined, looked, skipped
from maskmill.verification.listed_shards import ListedFile, ListedShard, read_listed
from maskmill.verification.options import VerifyOptions, shard_numbers
from maskmill.verification.pieces import Piece, PieceKind
from maskmill.verification.remaking_checks import plan_remakes, text_of_shard
from maskmill.verification.row_rules import (
    KnownPieces,
    RowRules,
    cleaned,
    plan_of,
    rules_of_file,
    rules_of_plan,
    rules_of_records,
    schema_of,
)
from maskmill.verification.verify_targets import Target, VerifyPlan, may_be_data
from maskmill.verification.vocabulary_checks import check_lines, find_vocabulary, load_named

_NUMBER = re.compile(r"-(\d+)-of-(\d+)")
_INDEX_SUFFIX = ".idx"
_SOME_SIZE = 1 << 20  # of a vocabulary, where it is not known; it decides types alone
_SHOWN = 200
_THREADS = 16  # that look into different files


def plan(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> VerifyPlan:
    """The targets with their pieces, and with what was found of their manifests, directories and vocabularies.

    Args:
      targets: as `verify_targets.find_targets` gives them.
      options: of the verification.
      scratch: a directory that all workers reach.

    Raises:
      UnusableInputError: the user named a vocabulary that cannot be used, or shards that there are not.
    """
    planned = _planned(targets, options, scratch)
    if options.shards is not None and not any(target.pieces for target in planned):
        raise UnusableInputError(
            f"--shards {options.shards}: there are no such shards; see the numbers in their names."
        )
    planned = plan_remakes(_with_other_texts(planned), options, scratch)
    return VerifyPlan(targets=tuple(planned), options=options, scratch=scratch)


def _planned(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> list[Target]:
    planned = []
    for target in targets:
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            planned.append(_Planner(target, options, scratch, ranges).plan())
    return planned


def _with_other_texts(targets: Sequence[Target]) -> list[Target]:
    """Tells the files of training text which eval text must not be in them."""
    text = [piece for target in targets for piece in target.pieces if piece.kind == "text"]
    evals, trained = (tuple(p.path for p in text if p.split == split) for split in ("eval", "train"))
    if not evals:
        return list(targets)

    def told(piece: Piece) -> Piece:
        is_trained = (piece.kind, piece.split) == ("text", "train")
        return dataclasses.replace(piece, eval_texts=evals, train_texts=trained) if is_trained else piece

    return [dataclasses.replace(target, pieces=tuple(map(told, target.pieces))) for target in targets]


class _Planner:
    """Plans the pieces of one target."""

    def __init__(self, target: Target, options: VerifyOptions, scratch: str, ranges: ByteRanges) -> None:
        self._target, self._options, self._scratch, self._ranges = target, options, scratch, ranges
        self._chosen = None if options.shards is None else shard_numbers(options.shards)

    def plan(self) -> Target:
        made = self._target.made
        return self._plan_files() if made is None else self._plan_made(made)

    def _plan_made(self, made: Mapping[str, Any]) -> Target:
        target = self._target
        shards, checked = read_listed(made, target.manifest_path)
        checks = [target.checked, checked]
        target = dataclasses.replace(target, shards=shards, made=cleaned(made))
        if not target.named:
            checks.append(check_directory(target, shards))
            if has_all_shards(target):
                checks.append(check_numbers([shard.name for shard in shards], target.manifest_path))
        if target.kind == "vocabulary":
            return dataclasses.replace(target, checked=joined([*checks, self._check_vocabulary_files(shards)]))
        kept = [shard for shard in shards if self._is_chosen(shard.number)]
        is_whole = target.is_whole and len(kept) == len(shards)
        if target.kind == "text":
            pieces = self._named_only(
                self._piece("text", target.file(file.name), shard.kind, shard.number, file)
                for shard in kept
                for file in shard.files
            )
            return dataclasses.replace(target, pieces=tuple(pieces), is_whole=is_whole, checked=joined(checks))
        rules, known, found = self._rules(made)
        checks += [found, check_listings(target, self._ranges) if not target.named else Checked()]
        pieces = self._named_only(self._examples_piece(shard, file, rules) for shard in kept for file in shard.files)
        known, checked = dataclasses.replace(known, vocabulary=None), joined(checks)
        return dataclasses.replace(target, pieces=tuple(pieces), is_whole=is_whole, checked=checked, known=known)

    def _is_chosen(self, number: int) -> bool:
        return self._chosen is None or any(number in chosen for chosen in self._chosen)

    def _named_only(self, pieces: Iterable[Piece]) -> list[Piece]:
        named = {_normal(name) for name in self._target.named}
        return [piece for piece in pieces if not named or _normal(piece.path) in named]

    def _piece(self, kind: PieceKind, path: str, split: str, shard: int, expected: ListedFile, **more: Any) -> Piece:
        return Piece(
            kind=kind,
            path=path,
            split=split,
            shard=shard,
            directory=self._target.directory,
            expected=expected,
            scratch=self._scratch,
            **more,
        )

    def _examples_piece(self, shard: ListedShard, file: ListedFile, rules: RowRules | None) -> Piece:
        path = self._target.file(file.name)
        expected = dataclasses.replace(file, index=file.index and self._target.file(file.index))
        said = (self._target.made or {}).get("format")
        format: Any = said if said in shard_formats.NAMES else "tfrecord"
        text = None
        if shard_formats.format_of(format).reads_text:
            text = text_of_shard(shard, self._target, self._options, may_differ=True)
        own = None if rules is None else rules_of_file(rules, _data_file(path, expected, rules.data_set.width, text))
        return self._piece("examples", path, shard.kind, shard.number, expected, format=format, rules=own)

    def _rules(self, made: Mapping[str, Any]) -> tuple[RowRules | None, KnownPieces, Checked]:
        """How rows must look, by the manifest and the vocabulary; None if the manifest cannot be understood."""
        directory, file = self._target.directory, self._target.manifest_path
        known, checked = find_vocabulary(made, directory, self._options.vocab_file, self._ranges)
        try:
            plan = plan_of(made)
        except UnusableInputError as error:
            return None, known, joined([checked, _manifest_problem(file, "options of examples", str(error))])
        is_tokenizer = known.path is not None and known.is_tokenizer
        marks_words = not is_tokenizer and (known.vocabulary is None or known.vocabulary.marks_words)
        schema = schema_of(plan, known.size or _SOME_SIZE, marks_words=marks_words)
        problems = [checked]
        if "schema" in made and known.vocabulary is not None:
            wanted = [tuple(entry.values()) for entry in schema]
            listed = made["schema"] if isinstance(made["schema"], list) else [made["schema"]]
            said = [_column_said(entry) for entry in listed]
            if said != wanted:
                problems.append(_manifest_problem(file, "the schema", f"{_shown(said)}, not {_shown(wanted)}"))
        if made.get("format") != (made["parameters"].get("format") or made.get("format")):
            problems.append(_manifest_problem(file, "the format", f"it is {_shown(made.get('format'))}"))
        return rules_of_plan(plan, schema, known, directory), known, joined(problems)

    def _check_vocabulary_files(self, shards: Sequence[ListedShard]) -> Checked:
        """Compares the files of a vocabulary's directory with its manifest; they are small."""
        checks: list[Checked] = []
        for listed in (file for shard in shards for file in shard.files):
            path = self._target.file(listed.name)
            checked = check_file(self._piece("text", path, "", 0, listed), self._ranges)
            checks.append(checked)
            if files.base_name(listed.name) == "vocab.txt" and checked.sha256 is not None:
                checks.append(check_lines(path, self._ranges.read_all(path)))
        return joined(checks)

    def _plan_files(self) -> Target:
        """Files without a manifest: how their rows must look is told by the first of each."""
        target = self._target
        everything = target.named or [path for path in files.list_directory(target.directory) if may_be_data(path)]
        numbered = [(path, _NUMBER.search(files.base_name(path))) for path in everything]
        paths = [path for path, found in numbered if self._is_chosen(int(found[1]) if found else 0)]
        checks = [target.checked]
        if target.is_whole:
            checks.append(check_numbers(everything, target.directory))
        is_whole = target.is_whole and len(paths) == len(everything)
        target = dataclasses.replace(target, is_whole=is_whole)
        if target.kind == "text":
            pieces = [self._loose_piece(path, place, unusable=_no_shard(path)) for place, path in enumerate(paths)]
            return dataclasses.replace(target, pieces=tuple(pieces), checked=joined(checks))
        known, found = KnownPieces(), skipped("no vocabulary is named with --vocab_file", "vocabulary")
        if self._options.vocab_file is not None:
            known, found = load_named(self._options.vocab_file)
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as threads:
            rules = list(threads.map(lambda path: self._rules_of_loose(path, known), paths))
        pieces = [
            self._loose_piece(path, place, unusable=own)
            if isinstance(own, str)
            else self._loose_piece(path, place, rules=own)
            for place, (path, own) in enumerate(zip(paths, rules, strict=True))
        ]
        checks += [found, _check_columns([piece for piece in pieces if piece.rules is not None])]
        known = dataclasses.replace(known, vocabulary=None)
        return dataclasses.replace(target, pieces=tuple(pieces), known=known, checked=joined(checks))

    def _rules_of_loose(self, path: str, known: KnownPieces) -> RowRules | str:
        """How the rows of a file must look, by its first example; or why that is not known, as a clause."""
        try:
            if shard_formats.needs_manifest(path):
                raise UnusableInputError("only TFRecords can be verified without a manifest")
            features = first_example(path, self._ranges)
            if not features:
                raise UnusableInputError("there is no example in this file")
            return rules_of_records(features, self._options, known, path)
        except (UnusableInputError, RunFailedError) as error:
            return str(error).removeprefix(f"{path}: ").rstrip(".")

    def _loose_piece(self, path: str, place: int, rules: RowRules | None = None, unusable: str | None = None) -> Piece:
        found = _NUMBER.search(files.base_name(path))
        split, shard = self._options.split or kind_of_text(path), int(found[1]) if found else place
        if self._target.kind == "text":
            return self._piece("text", path, split, shard, ListedFile(), unusable=unusable)
        index = f"{path}{_INDEX_SUFFIX}"
        expected = ListedFile(index=index if _is_there(index, self._ranges) else None)
        own = None if rules is None else rules_of_file(rules, _data_file(path, expected, rules.data_set.width))
        return self._piece("examples", path, split, shard, expected, format="tfrecord", rules=own, unusable=unusable)


def _data_file(path: str, file: ListedFile, width: int, text: str | None = None) -> DataFile:
    """A file as readers take it, who count its samples themselves; width: of rows that are in no bin."""
    return DataFile(
        path=path,
        samples=file.examples or 0,
        size=file.size,
        sha256=file.sha256,
        index=file.index,
        width=file.width or width,
        text=text,
    )


def _no_shard(path: str) -> str | None:
    """Why a file is not a text shard; None if it may be one, or only its own reader can tell."""
    if is_web(path):
        return None
    try:
        what = no_text_shard(path)
    except (UnusableInputError, RunFailedError):
        return None
    return None if what is None else f"this is {what}, but no text shard; name text shards or examples"


def _column_said(entry: Any) -> Any:
    """A column that a manifest lists, or what stands there instead."""
    return (entry.get("name"), entry.get("dtype"), entry.get("shape")) if isinstance(entry, dict) else _shown(entry)


def _check_columns(pieces: Sequence[Piece]) -> Checked:
    """A warning where files that were named together have rows of other columns."""
    others = [piece.path for piece in pieces if piece.rules.data_set.columns != pieces[0].rules.data_set.columns]
    if not others:
        return Checked()
    what = (
        f"the first row has other features, or other numbers of values, than the first of {pieces[0].path}; if these "
        "are two data sets, verify them apart"
    )
    expected, count = "the same features in all files", len(others)
    return looked("schema", finding("schema", others[0], expected, "others", what, "warning", count=count))


def _normal(path: str) -> str:
    return re.sub(r"(?<!:)/+", "/", path).removeprefix("./")


def _is_there(path: str, ranges: ByteRanges) -> bool:
    try:
        return ranges.exists(path)
    except (UnusableInputError, RunFailedError):
        return False


def _shown(value: Any) -> str:
    return repr(value)[:_SHOWN]


def _manifest_problem(file: str, what: str, why: str) -> Checked:
    what = f"{what} cannot be ({why.rstrip('.')}); put back the manifest that was written with the data"
    return Checked(findings=[finding("manifest", file, "as maskmill writes it", why[:_SHOWN], what)])
