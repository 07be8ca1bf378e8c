"""Which pieces of work a verification has: one for each file, and one for each shard that is made again."""

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transforms.errors import RunFailedError, UnusableInputError
from transforms.reading.byte_ranges import ByteRanges
from transforms.reading.data_set import DataFile
from transforms.reading.record_indexes import first_example
from transforms.reading.remote import open_ranges
from transforms.shards.text_files import kind_of_text
from transforms.storage import files, manifest
from transforms.verification.directory_checks import check_directory
from transforms.verification.findings import Checked, Finding, joined
from transforms.verification.known_rules import (
    KnownPieces,
    plan_of,
    rules_of_file,
    rules_of_plan,
    rules_of_records,
    schema_of,
)
from transforms.verification.listed_shards import ListedFile, ListedShard, read_listed
from transforms.verification.options import VerifyOptions, shard_numbers
from transforms.verification.pieces import ExpectedFile, Piece
from transforms.verification.remake_planning import plan_remakes
from transforms.verification.row_rules import RowRules
from transforms.verification.targets import Target
from transforms.verification.vocabulary_checks import FoundVocabulary, check_lines, find_vocabulary, load_named

_NUMBER = re.compile(r"-(\d+)-of-(\d+)")
_INDEX_SUFFIX = ".idx"


def plan(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> tuple[Target, ...]:
    """The targets with their pieces, and with what was found of their manifests, directories and vocabularies.

    Args:
      targets: as `targets.find_targets` gives them.
      options: of the verification.
      scratch: a directory that all workers reach.

    Raises:
      UnusableInputError: the user named a vocabulary that cannot be used, or shards that there are not.
    """
    planned = []
    for target in targets:
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            planned.append(_Planner(target, options, scratch, ranges).plan())
    if options.shards is not None and not any(target.pieces for target in planned):
        raise UnusableInputError(
            f"--shards {options.shards}: there are no such shards; see the numbers in their names."
        )
    return plan_remakes(planned, options, scratch)


class _Planner:
    """Plans the pieces of one target."""

    def __init__(self, target: Target, options: VerifyOptions, scratch: str, ranges: ByteRanges) -> None:
        self._target, self._options, self._scratch, self._ranges = target, options, scratch, ranges
        self._chosen = None if options.shards is None else shard_numbers(options.shards)

    def plan(self) -> Target:
        target, made = self._target, self._target.made
        if made is None:
            return self._plan_files()
        file = files.join(target.directory, manifest.MANIFEST)
        shards, checked = read_listed(made, file)
        checks = [target.checked, checked]
        target = dataclasses.replace(target, shards=shards)
        if not target.named:
            checks.append(check_directory(target, shards))
        if target.kind == "vocabulary":
            return dataclasses.replace(target, checked=joined([*checks, self._check_vocabulary_files(shards)]))
        kept = [shard for shard in shards if self._is_chosen(shard.number)]
        is_whole = target.is_whole and len(kept) == len(shards)
        if target.kind == "text":
            pieces = [self._text_piece(shard, file) for shard in kept for file in shard.files]
            pieces = self._named_only(pieces)
            return dataclasses.replace(target, pieces=tuple(pieces), is_whole=is_whole, checked=joined(checks))
        rules, vocabulary, found = self._rules(made)
        checks.append(found)
        pieces = self._named_only([self._examples_piece(shard, file, rules) for shard in kept for file in shard.files])
        return dataclasses.replace(
            target,
            pieces=tuple(pieces),
            is_whole=is_whole,
            checked=joined(checks),
            vocabulary=vocabulary.path,
            vocabulary_sha256=vocabulary.sha256,
            is_tokenizer=vocabulary.is_tokenizer,
        )

    def _is_chosen(self, number: int) -> bool:
        return self._chosen is None or any(number in chosen for chosen in self._chosen)

    def _named_only(self, pieces: Iterable[Piece]) -> list[Piece]:
        named = {_normal(name) for name in self._target.named}
        return [piece for piece in pieces if not named or _normal(piece.path) in named]

    def _text_piece(self, shard: ListedShard, file: ListedFile) -> Piece:
        return Piece(
            kind="text",
            path=files.join(self._target.directory, file.name),
            split=shard.kind,
            shard=shard.number,
            directory=self._target.directory,
            expected=ExpectedFile(size=file.size, sha256=file.sha256, counts=shard.counts),
            contamination=self._options.contamination,
            scratch=self._scratch,
        )

    def _examples_piece(self, shard: ListedShard, file: ListedFile, rules: RowRules | None) -> Piece:
        directory = self._target.directory
        path = files.join(directory, file.name)
        index = None if file.index is None else files.join(directory, file.index)
        expected = ExpectedFile(
            size=file.size,
            sha256=file.sha256,
            index=index,
            index_sha256=file.index_sha256,
            samples=file.examples,
            counts=shard.counts if len(shard.files) == 1 else {},
        )
        own = None
        if rules is not None:
            data_file = DataFile(
                path=path,
                samples=file.examples or 0,
                size=file.size,
                sha256=file.sha256,
                index=index,
                width=file.width or rules.data_set.width,
            )
            own = rules_of_file(rules, data_file)
        return Piece(
            kind="examples",
            path=path,
            split=shard.kind,
            shard=shard.number,
            directory=directory,
            expected=expected,
            format=_format_of(self._target.made or {}),
            rules=own,
            contamination=self._options.contamination,
            scratch=self._scratch,
        )

    def _rules(self, made: Mapping[str, Any]) -> tuple[RowRules | None, FoundVocabulary, Checked]:
        """How rows must look, by the manifest and the vocabulary; None where the manifest cannot be understood."""
        directory = self._target.directory
        file = files.join(directory, manifest.MANIFEST)
        vocabulary, checked = find_vocabulary(made, directory, self._options.vocab_file, self._ranges)
        try:
            plan = plan_of(made)
        except UnusableInputError as error:
            return None, vocabulary, joined([checked, _manifest_problem(file, "options of examples", str(error))])
        known = vocabulary.known
        size, marks_words = known.size, known.vocabulary is None or known.vocabulary.marks_words
        schema = schema_of(plan, size or 1 << 20, marks_words=marks_words and not vocabulary.is_tokenizer)
        if "schema" in made and known.vocabulary is not None:
            said = [
                (entry.get("name"), (entry.get("shape") or [0])[0], entry.get("dtype") == "float32")
                if isinstance(entry, dict) and isinstance(entry.get("shape", []), list)
                else repr(entry)
                for entry in (made["schema"] if isinstance(made["schema"], list) else [made["schema"]])
            ]
            wanted = [(column.name, column.length, column.is_float) for column in schema]
            if said != wanted:
                return (
                    rules_of_plan(plan, schema, known, directory),
                    vocabulary,
                    joined([checked, _manifest_problem(file, "the schema", f"{_shown(said)}, not {_shown(wanted)}")]),
                )
        return rules_of_plan(plan, schema, known, directory), vocabulary, checked

    def _check_vocabulary_files(self, shards: Sequence[ListedShard]) -> Checked:
        """Holds the files of a vocabulary's directory against its manifest; they are small."""
        from transforms.verification.file_checks import check_file

        checks = []
        for listed in (file for shard in shards for file in shard.files):
            path = files.join(self._target.directory, listed.name)
            piece = Piece(
                kind="text",
                path=path,
                split="",
                shard=0,
                directory=self._target.directory,
                expected=ExpectedFile(size=listed.size, sha256=listed.sha256),
            )
            checked, _, digest = check_file(piece, self._ranges)
            checks.append(checked)
            if files.base_name(listed.name) == "vocab.txt" and digest is not None:
                checks.append(check_lines(path, self._ranges.read_all(path)))
        return joined(checks)

    def _plan_files(self) -> Target:
        """Files without a manifest."""
        target = self._target
        paths = [path for path in target.named or _files_in(target.directory) if self._is_chosen_file(path)]
        everything = len(paths) == len(target.named or _files_in(target.directory))
        if target.kind == "text":
            pieces = [self._loose_piece(path, place, None) for place, path in enumerate(paths)]
            return dataclasses.replace(target, pieces=tuple(pieces), is_whole=target.is_whole and everything)
        vocabulary, found = FoundVocabulary(known=KnownPieces()), Checked()
        if self._options.vocab_file is not None:
            vocabulary, found = load_named(self._options.vocab_file)
        else:
            found = Checked(skipped={"vocabulary": "no vocabulary is named with --vocab_file"})
        rules, problem = self._rules_of_files(paths, vocabulary.known)
        pieces = [self._loose_piece(path, place, rules) for place, path in enumerate(paths)]
        return dataclasses.replace(
            target,
            pieces=tuple(pieces),
            is_whole=target.is_whole and everything,
            checked=joined([target.checked, found, problem]),
            vocabulary=vocabulary.path,
            vocabulary_sha256=vocabulary.sha256,
            is_tokenizer=vocabulary.is_tokenizer,
        )

    def _is_chosen_file(self, path: str) -> bool:
        found = _NUMBER.search(files.base_name(path))
        return self._is_chosen(int(found[1]) if found else 0)

    def _rules_of_files(self, paths: Sequence[str], known: KnownPieces) -> tuple[RowRules | None, Checked]:
        problems: list[str] = []
        for path in paths:
            if path.endswith((".parquet", ".mds")):
                problems.append(f"{path}: only TFRecords can be verified without a manifest.")
                continue
            try:
                features = first_example(path, self._ranges)
                if features:
                    return rules_of_records(features, self._options, known, path), Checked()
            except (UnusableInputError, RunFailedError) as error:
                problems.append(str(error))
        why = "; ".join(problems[:1]) or "there is no example in these files"
        return None, Checked(skipped={"schema": why})

    def _loose_piece(self, path: str, place: int, rules: RowRules | None) -> Piece:
        found = _NUMBER.search(files.base_name(path))
        is_text = self._target.kind == "text"
        index = f"{path}{_INDEX_SUFFIX}"
        has_index = not is_text and _is_there(index, self._ranges)
        own = None
        if rules is not None:
            index_path = index if has_index else None
            own = rules_of_file(
                rules,
                DataFile(path=path, samples=-1, size=None, sha256=None, index=index_path, width=rules.data_set.width),
            )
        return Piece(
            kind="text" if is_text else "examples",
            path=path,
            split=self._options.split or kind_of_text(path),
            shard=int(found[1]) if found else place,
            directory=self._target.directory,
            expected=ExpectedFile(index=index if has_index else None),
            format=None if is_text else "tfrecord",
            rules=own,
            contamination=self._options.contamination,
            scratch=self._scratch,
        )


def _normal(path: str) -> str:
    return re.sub(r"(?<!:)/+", "/", path).removeprefix("./")


def _is_there(path: str, ranges: ByteRanges) -> bool:
    try:
        ranges.size(path)
    except (UnusableInputError, RunFailedError):
        return False
    return True


def _files_in(directory: str) -> list[str]:
    from transforms.verification.targets import may_be_data

    return [path for path in files.list_directory(directory) if may_be_data(path)]


def _format_of(made: Mapping[str, Any]) -> Any:
    given = made.get("format", "tfrecord")
    return given if given in ("tfrecord", "parquet", "mds") else "tfrecord"


def _shown(value: Any) -> str:
    return repr(value)[:200]


def _manifest_problem(file: str, what: str, why: str) -> Checked:
    message = f"{file}: {what} cannot be ({why.rstrip('.')}); put back the manifest that was written with the data."
    finding = Finding(check="manifest", file=file, expected="as maskmill writes it", found=why[:200], message=message)
    return Checked(findings=(finding,))
