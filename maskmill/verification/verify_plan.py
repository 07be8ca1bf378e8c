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
from maskmill.reading.made_examples import manifest_in
from maskmill.reading.record_indexes import first_example
from maskmill.reading.remote import open_ranges
from maskmill.records import shard_formats
from maskmill.records.plan import ExamplesPlan
from maskmill.storage import files, manifest
from maskmill.storage.paths import is_web
from maskmill.text.lookalikes import no_text_shard
from maskmill.text.text_files import kind_of_text
from maskmill.verification.comparison_checks import check_comparable
from maskmill.verification.directory_checks import (
    check_claim,
    check_directory,
    check_listings,
    check_names,
    check_numbers,
)
from maskmill.verification.file_checks import check_file
from maskmill.verification.findings import CHECKS, Checked, finding, import_checks, joined, looked, skipped
from maskmill.verification.listed_shards import ListedFile, ListedShard, read_listed
from maskmill.verification.options import VerifyOptions, shard_numbers
from maskmill.verification.pieces import Piece, PieceKind
from maskmill.verification.remaking_checks import plan_remakes, text_of_shard
from maskmill.verification.row_reading import first_readable_example
from maskmill.verification.row_rules import (
    KnownPieces,
    RowRules,
    cleaned,
    parameters_of,
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
_OLDER = "an older version's manifest does not say what the picked examples were made with"
_COMPATS = ("none", "mlperf", "google")
_SOME_SIZE = 1 << 20  # of a vocabulary, where it is not known; it decides types alone
_OF_VOCABULARY = ("vocabulary", "vocabulary_size", "special_ids")  # what a manifest says of it, or an older one not
_THREADS = 16  # that look into different files


def plan(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> VerifyPlan:
    """The targets with their pieces, and with what was found of their manifests, directories and vocabularies.

    Args:
      targets: as `verify_targets.find_targets` gives them.
      options: of the verification.
      scratch: a directory that all workers reach.

    Raises:
      UnusableInputError: the user named a vocabulary that cannot be used, or shards, checks or data to compare that
        there are not.
    """
    import_checks()
    for name in options.checks:
        if name not in CHECKS:
            raise UnusableInputError(f"--checks {name}: there is no such check; there are {', '.join(CHECKS)}.")
    if options.against is not None:
        check_comparable(options.against, options.vocab_file)
    planned: list[Target] = []
    for target in targets:
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            planned += _Planner(target, options, scratch, ranges).plan()
    if options.shards is not None and not any(target.pieces for target in planned):
        raise UnusableInputError(
            f"--shards {options.shards}: there are no such shards; see the numbers in their names."
        )
    planned = plan_remakes(_with_other_texts(planned), options, scratch)
    return VerifyPlan(targets=tuple(planned), options=options, scratch=scratch)


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
        self._unusable: dict[str, str] = {}  # why nothing of a file can be looked at, by its path

    def plan(self) -> list[Target]:
        made = self._target.made
        return self._plan_files() if made is None else [self._plan_made(made)]

    def _plan_made(self, made: Mapping[str, Any]) -> Target:
        target = self._target
        shards, checked = read_listed(made, target.manifest_path)
        checks = [target.checked, checked]
        target = dataclasses.replace(target, shards=shards, made=cleaned(made))
        if not target.named:
            checks += [check_directory(target, shards), check_names(target, shards), check_claim(target, self._ranges)]
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
        rules, known, found = self._rules(made, shards)
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
            contamination=self._options.contamination,
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

    def _rules(
        self, made: Mapping[str, Any], shards: Sequence[ListedShard]
    ) -> tuple[RowRules | None, KnownPieces, Checked]:
        """How rows must look, by the manifest and the vocabulary; None if the manifest cannot be understood."""
        told = self._told(made)
        if told is None:
            return self._rules_of_first(shards), KnownPieces(), skipped(_OLDER, "vocabulary", "seed")
        of_made, directory = told
        file = files.join(directory, manifest.MANIFEST)
        known, checked = find_vocabulary(of_made, directory, self._options.vocab_file, self._ranges)
        try:
            plan = plan_of(of_made)
        except UnusableInputError as error:
            return None, known, joined([checked, _manifest_problem(file, "options of examples", str(error))])
        is_tokenizer = known.path is not None and known.is_tokenizer
        marks_words = not is_tokenizer and (known.vocabulary is None or known.vocabulary.marks_words)
        schema = schema_of(plan, known.size or _SOME_SIZE, marks_words=marks_words)
        problems = [checked, *_check_widths(plan, shards, file), *_check_options(made, file)]
        if "schema" in made and known.vocabulary is not None:
            wanted = [tuple(entry.values()) for entry in schema]
            listed = made["schema"] if isinstance(made["schema"], list) else [made["schema"]]
            said = [_column_said(entry) for entry in listed]
            if said != wanted:
                problems.append(_manifest_problem(file, "the schema", f"{_shown(said)}, not {_shown(wanted)}"))
        together = [name for name in _OF_VOCABULARY if name in made]
        if together and len(together) < len(_OF_VOCABULARY):
            missing = next(name for name in _OF_VOCABULARY if name not in made)
            problems.append(_manifest_problem(file, "the entries of the vocabulary", f"{missing} is missing"))
        return rules_of_plan(plan, schema, known, directory), known, joined(problems)

    def _told(self, made: Mapping[str, Any]) -> tuple[Mapping[str, Any], str] | None:
        """The manifest that says what examples were made with, and its directory; None if there is none.

        That of picked examples of an older version does not say it, but that of those that they were picked of does.
        """
        directory = self._target.directory
        if made["stage"] != "eval" or "examples" in made:
            return made, directory
        directory = files.join(files.parent(directory.rstrip("/")), "examples")
        of_made = _examples_manifest(directory, self._ranges)
        return None if of_made is None else (of_made, directory)

    def _rules_of_first(self, shards: Sequence[ListedShard]) -> RowRules | None:
        """The rules of examples of which nothing is told, by the first of them."""
        for path in (self._target.file(file.name) for shard in shards for file in shard.files):
            features = self._features_of(path)
            if not isinstance(features, str):
                return rules_of_records(features, self._options, KnownPieces(), path)
        return None

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

    def _plan_files(self) -> list[Target]:
        """Files without a manifest: those whose rows have other columns are targets of their own."""
        target = self._target
        everything = target.named or [path for path in files.list_directory(target.directory) if may_be_data(path)]
        numbered = [(path, _NUMBER.search(files.base_name(path))) for path in everything]
        paths = [path for path, found in numbered if self._is_chosen(int(found[1]) if found else 0)]
        checked = joined([target.checked, check_numbers(everything, target)])
        is_whole = target.is_whole and len(paths) == len(everything)
        target = dataclasses.replace(target, is_whole=is_whole, checked=checked)
        if target.kind == "text":
            pieces = [self._loose_piece(path, place, None) for place, path in enumerate(paths)]
            return [dataclasses.replace(target, pieces=tuple(pieces))]
        known, found = KnownPieces(), skipped("no vocabulary is named with --vocab_file", "vocabulary")
        if self._options.vocab_file is not None:
            known, found = load_named(self._options.vocab_file)
        groups, problem = self._by_columns(paths, known)
        target = dataclasses.replace(
            target, is_whole=target.is_whole and len(groups) == 1, known=dataclasses.replace(known, vocabulary=None)
        )
        checks = [joined([target.checked, found, problem]), *[Checked()] * len(groups)]
        planned = []
        for (rules, of_group), checked in zip(groups, checks, strict=False):
            pieces = [self._loose_piece(path, place, rules) for place, path in enumerate(of_group)]
            planned.append(dataclasses.replace(target, pieces=tuple(pieces), checked=checked))
        return planned

    def _by_columns(
        self, paths: Sequence[str], known: KnownPieces
    ) -> tuple[list[tuple[RowRules | None, list[str]]], Checked]:
        """Files by how their rows must look, which their first examples tell; and what is wrong with that."""
        groups: dict[tuple[Any, ...], tuple[RowRules | None, list[str]]] = {}
        unknown: list[str] = []
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as threads:
            for path, found in zip(paths, threads.map(self._features_of, paths), strict=True):
                try:
                    if isinstance(found, str):
                        raise UnusableInputError(found)
                    rules = rules_of_records(found, self._options, known, path)
                except UnusableInputError as error:
                    unknown.append(path)
                    self._unusable[path] = str(error).removeprefix(f"{path}: ").rstrip(".")
                    continue
                groups.setdefault((rules.data_set.columns,), (rules, []))[1].append(path)
        listed = list(groups.values())
        checked = _other_columns([paths for _, paths in listed])
        if unknown and listed:
            listed[0][1].extend(unknown)  # the rows that can be read of them are compared with these rules
        elif not listed:
            listed = [(None, unknown)]
        return listed, checked

    def _features_of(self, path: str) -> Mapping[str, tuple[int, str]] | str:
        """The features of the first example of a file, or why they are not known."""
        if shard_formats.needs_manifest(path):
            return f"{path}: only TFRecords can be verified without a manifest."
        try:
            return first_example(path, self._ranges) or f"{path}: there is no example in this file."
        except RunFailedError as error:
            return str(error)
        except UnusableInputError as error:
            return self._features_behind_damage(path) or str(error)

    def _features_behind_damage(self, path: str) -> Mapping[str, tuple[int, str]] | None:
        try:
            return first_readable_example(path, self._ranges)
        except (UnusableInputError, RunFailedError):
            return None

    def _loose_piece(self, path: str, place: int, rules: RowRules | None) -> Piece:
        found = _NUMBER.search(files.base_name(path))
        split, shard = self._options.split or kind_of_text(path), int(found[1]) if found else place
        if self._target.kind == "text":
            return self._piece("text", path, split, shard, ListedFile(), unusable=_no_shard(path))
        index = f"{path}{_INDEX_SUFFIX}"
        expected = ListedFile(index=index if _is_there(index, self._ranges) else None)
        own = None if rules is None else rules_of_file(rules, _data_file(path, expected, rules.data_set.width))
        unusable = self._unusable.get(path)
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


def _examples_manifest(directory: str, ranges: ByteRanges) -> dict[str, Any] | None:
    """The manifest of the examples in a directory; None if there is none."""
    with contextlib.suppress(UnusableInputError, RunFailedError):
        made = manifest_in(directory, ranges)
        return made if made is not None and made["stage"] == "examples" else None
    return None


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


def _check_options(made: Mapping[str, Any], file: str) -> list[Checked]:
    """Compares the parameters of a manifest with what it says elsewhere."""
    problems = []
    given, options = made["parameters"].get("format"), parameters_of(made)
    if given is not None and given != made.get("format", given):
        problems.append(_manifest_problem(file, "the format", f"it is {given!r} and {made['format']!r}"))
    compat = made["parameters"].get("compat", "none")
    if compat not in _COMPATS:
        problems.append(_manifest_problem(file, "compat", f"it is {_shown(compat)}"))
    option = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
    used, digest = options.get(option), options.get(f"{option}_sha256")
    said = [entry.get("sha256") for entry in made["inputs"] if entry.get("path") == used]
    if said and said != [digest]:
        problems.append(_manifest_problem(file, f"the sha256 of {option}", f"it is {digest!r} and {said[0]!r}"))
    return problems


def _check_widths(plan: ExamplesPlan, shards: Sequence[ListedShard], file: str) -> list[Checked]:
    """Compares the widths of files with those of the bins."""
    widths = [None] if plan.objective.bins is None else plan.widths
    others = [listed for shard in shards for listed in shard.files if listed.width not in widths]
    if not others:
        return []
    wanted = " or ".join(map(str, plan.widths)) if plan.objective.bins is not None else "nothing, without bins"
    return [_manifest_problem(file, f"width of {others[0].name}", f"it is {others[0].width}, and must be {wanted}")]


def _other_columns(groups: Sequence[Sequence[str]]) -> Checked:
    """A warning where files that were named together have rows of other widths."""
    if len(groups) <= 1:
        return Checked()
    first, other = groups[0][0], groups[1][0]
    what = (
        f"the first row has other features, or other numbers of values, than the first of {first}; if these are two "
        "data sets, verify them apart"
    )
    expected, count = "the same features in all files", sum(len(group) for group in groups[1:])
    return looked("schema", finding("schema", other, expected, "others", what, "warning", count=count))


def _normal(path: str) -> str:
    return re.sub(r"(?<!:)/+", "/", path).removeprefix("./")


def _is_there(path: str, ranges: ByteRanges) -> bool:
    try:
        ranges.size(path)
    except (UnusableInputError, RunFailedError):
        return False
    return True


def _shown(value: Any) -> str:
    return repr(value)[:200]


def _manifest_problem(file: str, what: str, why: str) -> Checked:
    what = f"{what} cannot be ({why.rstrip('.')}); put back the manifest that was written with the data"
    return Checked(findings=[finding("manifest", file, "as maskmill writes it", why[:200], what)])
