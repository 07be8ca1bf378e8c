"""Follows one article: from the input's wikitext to text, to sentences in a text shard, to rows with masks."""

import bz2
import concurrent.futures
import contextlib
import dataclasses
import html
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection.opened_examples import OpenedExamples, Split, examples_in
from maskmill.inspection.opened_texts import OpenedTexts, TextDocument, texts_in
from maskmill.inspection.passages import FoundDocument, find_rows, find_text
from maskmill.inspection.sources_of_rows import tokenizer_of
from maskmill.mirrors.dump_names import date_in_name
from maskmill.options import of_parameters
from maskmill.storage import files, manifest
from maskmill.text.text_files import kind_of_text
from maskmill.tokenization.tokenized_text import LoadedTokenizer
from transforms.inputs.formats import detect
from transforms.inputs.items import CutOff, Document, RejectedPage
from transforms.inputs.mediawiki import Page, read_header
from transforms.inputs.multistream import index_of
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import Unit, plan_units, read_unit
from transforms.sentences.choice import SentenceChoice
from transforms.sentences.rules import SentenceRules
from transforms.sentences.training import ParametersFolder
from transforms.shards.options import ExtractionOptions

Item = Page | Document | RejectedPage
_UNITS_AHEAD = 2  # for each thread


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The page that a user names: by its id, if the name is a number, or by its title ("_" stands for a blank)."""

    name: str

    @property
    def id(self) -> str | None:
        """The id of a page; None: the name is not a number, so it is a title, or a document's id."""
        return self.name if self.name.isdecimal() else None

    def has_title(self, title: str) -> bool:
        """Whether a title is meant; the first letter may be small."""
        wanted = self.name.replace("_", " ").strip()
        return bool(wanted) and title in (wanted, wanted[:1].upper() + wanted[1:])

    def has_id(self, item: Item) -> bool:
        """Whether an item has the id."""
        if isinstance(item, Page):
            return self.id == str(item.page_id)
        return isinstance(item, Document) and item.document_id == self.name != ""

    def is_titled(self, item: Item) -> bool:
        """Whether an item has the title."""
        title = item.title if isinstance(item.title, str) else item.title.decode(errors="replace")
        return self.has_title(title)


def find_page(
    inputs: Sequence[files.FileInfo], wanted: Wanted, *, input_format: str, reading: ReadOptions
) -> tuple[str, Item] | None:
    """The path of an input, and its first page of this id, else of this title; None if there is none.

    Where a multistream dump's index lies beside it, one stream is read. Other inputs are read from their beginning, by
    as many threads as there are processors.

    Raises:
      UnusableInputError: an input is damaged.
    """
    titled = None
    for file in inputs:
        index = index_of(file)
        units = _units_by_index(file, index, wanted, input_format) if index is not None else None
        if units is None:
            units = plan_units([file], input_format=input_format, reading=reading, allow_empty=len(inputs) > 1)
        for item in _matches(units, wanted, reading):
            if wanted.id is None or wanted.has_id(item):
                return file.path, item
            titled = titled or (file.path, item)
    return titled


def _units_by_index(file: files.FileInfo, index: str, wanted: Wanted, input_format: str) -> list[Unit] | None:
    """The streams of a dump that have the page, by the dump's index; None: the index does not tell."""
    found_format, container = detect(file.path, input_format)
    if found_format != "mediawiki" or container != "bz2":
        return None
    starts: list[int] = []
    ends: list[int] = []
    last = -1
    with contextlib.suppress(OSError, ValueError, EOFError), contextlib.ExitStack() as stack:
        packed = stack.enter_context(files.open_input(index))
        for line in stack.enter_context(bz2.open(packed)) if index.endswith(".bz2") else packed:
            start_text, id_text, title = line.decode(errors="replace").rstrip("\r\n").split(":", 2)
            start = int(start_text)
            if start != last and len(ends) < len(starts):
                ends.append(start)
            last = start
            if (id_text == wanted.id or wanted.has_title(html.unescape(title))) and starts[-1:] != [start]:
                starts.append(start)
        ends += [file.size] * (len(starts) - len(ends))
        # An index of another dump would lead astray; one that lacks the page may be older than its dump.
        if starts and ends[-1] <= file.size:
            return [
                Unit(path=file.path, start=start, end=end, format=found_format, container=container)
                for start, end in zip(starts, ends, strict=True)
            ]
    return None


def _matches(units: Sequence[Unit], wanted: Wanted, reading: ReadOptions) -> Iterator[Item]:
    """The items of units that have the id or the title, in order."""
    is_over = threading.Event()

    def matches_of(unit: Unit) -> list[Item]:
        found: list[Item] = []
        for item in read_unit(unit, reading):
            if is_over.is_set():
                break
            if not isinstance(item, CutOff) and (wanted.has_id(item) or wanted.is_titled(item)):
                found.append(item)
                if wanted.id is None or wanted.has_id(item):
                    break
        return found

    threads = len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        try:
            waiting = iter(units)
            running = [pool.submit(matches_of, unit) for unit in itertools.islice(waiting, threads * _UNITS_AHEAD)]
            while running:
                yield from running.pop(0).result()
                running += [pool.submit(matches_of, unit) for unit in itertools.islice(waiting, 1)]
        finally:
            is_over.set()


def present_inputs(entries: Sequence[Mapping[str, Any]], near: Sequence[str]) -> list[files.FileInfo]:
    """The inputs of a manifest that are there: where they were, or, with their name and size, in another directory.

    near: these directories.
    """
    found: list[files.FileInfo] = []
    for entry in entries:
        path = str(entry["path"])
        places = [path, *(files.join(directory, files.base_name(path)) for directory in near)]
        for place in places:
            file = files.find(place)
            if file is not None and file.size == entry.get("bytes", file.size):
                found.append(files.FileInfo(path=place, size=file.size))
                break
    return found


_EXAMPLES = "examples"  # the folder of a build that has its examples
_MOST_EXAMPLES = 3


def find_document(
    path: str,
    name: str,
    *,
    vocab_file: str | None = None,
    most_examples: int = _MOST_EXAMPLES,
    there: files.Listing | None = None,
) -> FoundDocument:
    """Follows an article through a build.

    Args:
      path: the directory of the build, of its text or of its examples.
      name: the article's title, or its id in the dump.
      vocab_file: the vocabulary of examples that have no copy of it.
      there: what lies at the path, if that was just listed.

    Raises:
      UnusableInputError: there is no text with a manifest under this path, its inputs are gone, or lack the article.
    """
    there = there or files.Listing(path)
    with contextlib.ExitStack() as stack:
        texts = stack.enter_context(_texts_of(path, there))
        made, directory = texts.made, texts.directory
        if made is None or directory is None:
            raise UnusableInputError(
                f"{path}: there is no manifest of extract, which says what the text was made from; name the directory "
                "of a build or of its text."
            )
        build = files.parent(directory)
        source, page_path, item = _find_in_sources(made, [build, files.parent(build)], name)
        found = _extracted(item, page_path, name, source, made, directory)
        if found.outcome in ("train", "eval"):
            found = _placed(found, texts)
        if found.document is None:
            return found
        return _with_rows(found, lambda split: _examples_of(path, build, split, vocab_file, there), most_examples)


def _texts_of(path: str, there: files.Listing) -> OpenedTexts:
    """The text shards of a build; `path` may be its examples, too, whose manifest says where the text was."""
    try:
        return texts_in(path, there)
    except UnusableInputError:
        made = manifest.find_manifest(path) if files.is_local(path) else None
        sources = [] if made is None else [str(entry["path"]) for entry in made.get("inputs", ())]
        for directory in (
            files.join(files.parent(path.rstrip("/")), "text"),
            *(files.parent(text) for text in sources),
        ):
            with contextlib.suppress(UnusableInputError):
                return texts_in(directory, there)
        raise


def _find_in_sources(made: Mapping[str, Any], near: Sequence[str], name: str) -> tuple[str, str, Item]:
    """The name of the page's source in a build that mixes several, else ""; the path of its input; and the page.

    Raises:
      UnusableInputError: the inputs are gone, or have no such page.
    """
    entries = made["inputs"]
    present: list[files.FileInfo] = []
    for source in dict.fromkeys(str(entry.get("source", "")) for entry in entries):
        parameters = _parameters(made, source)
        inputs = present_inputs([entry for entry in entries if entry.get("source", "") == source], near)
        present += inputs
        reading = of_parameters(ExtractionOptions, parameters).reading
        page = find_page(inputs, Wanted(name), input_format=parameters.get("input_format", "auto"), reading=reading)
        if page is not None:
            return source, *page
    if present:
        raise UnusableInputError(
            f"{present[0].path}: no page has the title or id {name!r}; check how the wiki writes it, or search the "
            "text (--example search WORD)."
        )
    names = ", ".join(str(entry["path"]) for entry in entries[:3]) or "no input"
    raise UnusableInputError(
        f"{names}: the inputs of this data set are not there any more, so no page can be looked up; put them back, or "
        "search the text shards (--example search WORD)."
    )


def _parameters(made: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """The options that text was made with, by name; those of one source of a mix."""
    given = dict(made["parameters"]) | {key: value for key, value in made["decided"].items() if key != "sentences"}
    prefix = f"sources.{source}."
    return given | {
        key.removeprefix(prefix): value for key, value in given.items() if source and key.startswith(prefix)
    }


def _extracted(item: Item, path: str, name: str, source: str, made: Mapping[str, Any], directory: str) -> FoundDocument:
    """The page of the input at `path`, its text, and whether it became a document."""
    if isinstance(item, RejectedPage):
        return FoundDocument(name=name, title=item.title, id="", input=path, wikitext="", text="", outcome=item.reason)
    # These import Beam, which the templates of a dump are collected with.
    from transforms.shards.document_extractor import Origin, PlainDocument, document_extractor, or_rejected

    options = of_parameters(ExtractionOptions, _parameters(made, source))
    is_page = isinstance(item, Page)
    header = read_header(path) if is_page else b""
    date = _parameters(made, source).get("dump_date") or date_in_name(path)
    skipped = []
    if options.wikitext.expand_templates:
        skipped.append("Templates are not expanded here, so this text may lack what they gave.")
    if options.wikitext.template_rules is not None:
        rules_path = options.wikitext.template_rules
        if not files.exists(rules_path):
            skipped.append(f"{rules_path}: these template rules are not there any more.")
        else:
            rules = files.read_bytes(rules_path).decode()
            options = dataclasses.replace(options, wikitext=dataclasses.replace(options.wikitext, rules_text=rules))
    origin = Origin(date=date if is_page else "", header=header, sentences=_sentences(made, header, source))
    extractor = document_extractor(options, origin, "", directory)
    read = or_rejected(extractor.read, item)
    plain = read if isinstance(read, PlainDocument) else None
    done = or_rejected(extractor.extract, item)
    expected = None
    if isinstance(done, RejectedPage):
        outcome = done.reason
    elif isinstance(done, str):
        outcome = done
    else:  # the document as the extraction makes it now, wherever it is
        outcome = "train"
        lines = tuple(done.text.decode(errors="replace").removesuffix("\n\n").split("\n"))
        expected = TextDocument(file="", document=0, line=0, lines=lines)
    return FoundDocument(
        name=name,
        title=item.title.decode(errors="replace"),
        id=str(item.page_id) if isinstance(item, Page) else item.document_id,
        input=path,
        wikitext=item.text.decode(errors="replace") if isinstance(item, Page) else "",
        text="" if plain is None else plain.text.decode(errors="replace"),
        outcome=outcome,
        skipped=tuple(skipped),
        document=expected,
    )


def _sentences(made: Mapping[str, Any], header: bytes, source: str) -> str:
    """How the sentences of an input were split, as Origin has it: the choice of its language, or the only one."""
    entries = [entry for entry in made["decided"].get("sentences", ()) if entry.get("source", "") == source]
    language = Site.parse(header).language if header else ""
    chosen = next((entry for entry in entries if entry["language"] == language), entries[0] if entries else None)
    if chosen is None:
        return ""
    parameters = chosen.get("parameters")
    choice = SentenceChoice(
        rules=SentenceRules(
            language=chosen["language"],
            punkt=chosen["punkt"],
            stops=chosen.get("stops", ""),
            words=tuple(chosen.get("words", ())),
        ),
        why=chosen["why"],
        parameters=None if parameters is None else ParametersFolder(**parameters),
    )
    return choice.to_json()


def _placed(found: FoundDocument, texts: OpenedTexts) -> FoundDocument:
    """The document with its place in the text shards."""
    expected = () if found.document is None else found.document.lines
    place = find_text(texts, [line.encode() for line in expected])
    if place is None:
        return dataclasses.replace(found, outcome="absent", document=None)
    return dataclasses.replace(found, outcome=kind_of_text(place.file), document=place)


def _with_rows(
    found: FoundDocument, examples_of: Callable[[Split], OpenedExamples], most_examples: int
) -> FoundDocument:
    """The document with its pieces, and the rows that hold it; examples_of: opens the examples of a split."""
    document = found.document
    if document is None:
        return found
    split: Split = "eval" if found.outcome == "eval" else "train"
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(contextlib.closing(examples_of(split)))
            tokenizer = tokenizer_of(opened)
        except (UnusableInputError, RunFailedError) as error:
            return dataclasses.replace(found, skipped=(*found.skipped, str(error)))
        ids, pieces = _pieces(tokenizer, document.lines)
        rows = find_rows(opened, _files_of(opened, document.file), ids, most_examples)
    return dataclasses.replace(found, pieces=pieces, rows=rows)


def _examples_of(path: str, build: str, split: Split, vocab_file: str | None, there: files.Listing) -> OpenedExamples:
    """The examples of the split: those that the user named, or those of the build."""
    beside = files.join(build, _EXAMPLES)
    for directory in (path, beside):
        if there.has(files.join(directory, manifest.MANIFEST)):
            with contextlib.suppress(UnusableInputError):  # of another stage
                return examples_in(directory, split=split, vocab_file=vocab_file, there=there)
    if not there.has(files.join(beside, manifest.MANIFEST)):
        raise UnusableInputError(
            f"{beside}: there are no examples of this text here; name their directory to see rows."
        )
    return examples_in(beside, split=split, vocab_file=vocab_file, there=there)


def _files_of(opened: OpenedExamples, text: str) -> list[str]:
    """The files of the shards that were made of a text shard; all files where the manifest does not tell."""
    name = files.base_name(text)
    every = [file.path for file in opened.data_set.files]
    if opened.made is None or opened.directory is None:
        return every
    chosen = [
        files.join(opened.directory, entry["name"])
        for shard in opened.made["shards"]
        if any(files.base_name(str(source)) == name for source in shard.get("inputs", ()))
        for entry in manifest.files_of_shard(shard)
    ]
    return [file for file in every if file in chosen] or every


def _pieces(
    tokenizer: LoadedTokenizer, lines: Sequence[str]
) -> tuple[npt.NDArray[np.int32], tuple[tuple[str, ...], ...]]:
    """The pieces of sentences: their ids one after the other, and their names a sentence."""
    vocabulary = tokenizer.vocabulary
    names = dict(zip(vocabulary.ids.tolist(), vocabulary.pieces, strict=True))
    text = tokenizer.tokenizer().tokenize_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogatepass"))
    pieces: list[tuple[str, ...]] = [()] * len(lines)
    parts = np.split(text.ids, text.segment_ends[:-1])
    for line, ids in zip(text.segment_lines.tolist(), parts, strict=False):  # without segments there is one empty part
        pieces[line] = tuple(names.get(id, f"id {id}") for id in ids.tolist())
    return text.ids, tuple(pieces)
