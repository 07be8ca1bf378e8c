"""Decides how the sentences of each input are split, and trains Punkt on the inputs where its language needs that.

An input's choice travels with its description (InputFile.sentences). Trained parameters lie in the output, in the
folder punkt/LANGUAGE, where workers read them and from where other builds can take them.
"""

import collections
import dataclasses
import importlib.metadata
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from maskmill.inputs.items import CutOff
from maskmill.inputs.site import Site
from maskmill.inputs.units import InputFile, Unit, plan_units, read_unit
from maskmill.sentences import training
from maskmill.sentences.choice import (
    AUTO,
    SentenceChoice,
    choice_of_dump,
    choice_of_language,
    known_code,
    known_scripts,
    name_of,
    named_choice,
    names_several,
    sample_of,
    script_name,
)
from maskmill.sentences.detection import FEWEST_WORDS, Detection, detect_language
from maskmill.sentences.training import ParametersFolder
from maskmill.storage import completions, files, progress
from maskmill.storage.found_files import unchanged
from maskmill.text_shards import text_profile
from maskmill.text_shards.document_extractor import PlainDocument, document_extractor, or_rejected, origin_of
from maskmill.text_shards.fragments import Fragment, Records, profiles_of
from maskmill.text_shards.options import ExtractionOptions, QualityOptions

KIND = "punkt"
FOLDER = "punkt"  # in the output

LONG_LINE = 400  # characters: the median sentence has 60 to 150, whatever the language

_FEWEST_LETTERS = 100  # a text of fewer says nothing about its script

_TELLING_BYTES = 1 << 20  # of the text of all files whose language is not sure, which show it
_MOST_OF_NO_LANGUAGE = 0.1  # the share of records whose language is not sure, above which it is doubted

_LARGE_PART = 0.2  # of the letters of a text, in a script that its language is not written in

Doubt = Literal["long_lines", "cut_lines", "other_script", "part_other_script", "unknown_script", "unsure_language"]


def choose_sentences(
    inputs: Sequence[InputFile],
    extraction: ExtractionOptions,
    input_format: str,
    output: str,
    source: str = "",
) -> list[InputFile]:
    """Add to each input how its sentences are split; train Punkt first, unless that is done already.

    The sources of a mix, which have names, train parameters of their own, each in its own folder.

    Raises:
      UnusableInputError, RunFailedError: an input cannot be read, or the parameters that the user names cannot be used.
    """
    named = None if extraction.language == AUTO else named_choice(extraction.language)
    reading = _TextReader(
        extraction=_without_filters(extraction), input_format=input_format, output=output, source=source
    )
    if named is None:
        inputs, choices = reading.choices_of(inputs)
    else:
        choices = [named] * len(inputs)
    untrained = dict.fromkeys(choice for choice in choices if choice.needs_training)
    if untrained:
        size = len(untrained) * training.TRAINING_BYTES
        progress.announce(output, KIND, pieces=len(untrained), size=size, part=source)
    trained = {}
    for choice in untrained:
        of_choice = [file for file, of_file in zip(inputs, choices, strict=True) if of_file == choice]
        trained[choice] = choice.after_training(*_train(choice, of_choice, reading))
    return [
        dataclasses.replace(file, sentences=trained.get(choice, choice).to_json())
        for file, choice in zip(inputs, choices, strict=True)
    ]


def _without_filters(extraction: ExtractionOptions) -> ExtractionOptions:
    """Return the options that decide the text before filters and sentences, templates not expanded: they come later."""
    return dataclasses.replace(
        extraction,
        language=AUTO,
        keep_titles=False,
        random_seed=0,
        quality=QualityOptions(),
        wikitext=dataclasses.replace(extraction.wikitext, expand_templates=False),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _TextReader:
    """Reads the text of inputs before it is filtered and split."""

    extraction: ExtractionOptions
    input_format: str
    output: str
    source: str

    def texts(self, file: InputFile) -> Iterator[bytes]:
        """Yield the texts of an input's documents, in order; documents that are left out or rejected are passed
        over.
        """
        extractor = document_extractor(self.extraction, origin_of(file), "", self.output)
        for unit in self._units(file):
            for item in read_unit(unit, self.extraction.reading):
                document = None if isinstance(item, CutOff) else or_rejected(extractor.read, item)
                if isinstance(document, PlainDocument):
                    yield document.text

    def _units(self, file: InputFile) -> list[Unit]:
        info = files.FileInfo(path=file.path, size=file.size)
        reading = self.extraction.reading
        return plan_units([info], input_format=self.input_format, reading=reading, allow_empty=True)

    def choices_of(self, inputs: Sequence[InputFile]) -> tuple[list[InputFile], list[SentenceChoice]]:
        """Return how the inputs themselves say that their sentences are split: dumps by their headers, others by their
        words.

        A file that is too short to tell is in the language of all such files together, if that is sure.

        Returns:
          The inputs, with the language that their words say; their choices.
        """
        found = list(inputs)
        choices: list[SentenceChoice] = []
        unsure: dict[int, str] = {}
        held = 0
        for number, file in enumerate(inputs):
            is_dump = file.header and self.input_format in ("auto", "mediawiki")
            language = Site.parse(file.header).language if is_dump else ""
            if known_code(language):
                choices.append(choice_of_dump(language))
                continue
            sample = sample_of(self.texts(file))
            detection = detect_language(sample.encode())
            choices.append(choice_of_language(detection, sample))
            found[number] = _with_language(file, detection)
            if choices[number].why == "script" and held < _TELLING_BYTES:
                unsure[number] = sample
                held += len(sample)
        together = detect_language("\n".join(unsure.values()).encode())
        for number, sample in unsure.items():
            choices[number] = choice_of_language(together, sample)
            found[number] = _with_language(found[number], together)
        return found, choices


def _with_language(file: InputFile, found: Detection) -> InputFile:
    """Return a file with the language that its words say, unless they are too few to say any."""
    if not found.is_sure and found.words < FEWEST_WORDS:
        return file
    return dataclasses.replace(file, language=found.language, language_sure=found.sure)


def _train(
    choice: SentenceChoice, inputs: Sequence[InputFile], reading: _TextReader
) -> tuple[ParametersFolder | None, int]:
    """Train Punkt on inputs, unless that is done already.

    Returns:
      The folder of the parameters, None if the inputs are too short; and how many bytes of their text were read.
    """
    folder = f"{FOLDER}/{reading.source}" if reading.source else FOLDER
    name = f"{folder}/{choice.rules.language or f'text-{choice.script.lower()}'}"
    key = completions.fingerprint(
        KIND,
        [completions.FORMAT_VERSIONS[kind] for kind in (KIND, "extract")],
        importlib.metadata.version("nltk"),
        name,
        reading.extraction,
        reading.input_format,
        [(file.content, file.date) for file in inputs],
    )
    record = completions.once(
        reading.output,
        KIND,
        key,
        lambda: _write_parameters(name, inputs, reading),
        lambda record: completions.ItemFiles(written=[tuple(file) for file in record["files"]]),
        name=f"Punkt for {choice.name}",
    )
    parameters = None if record["parameters"] is None else ParametersFolder(**record["parameters"])
    return parameters, record["text_bytes"]


def _write_parameters(name: str, inputs: Sequence[InputFile], reading: _TextReader) -> dict[str, Any]:
    texts = itertools.chain.from_iterable(reading.texts(file) for file in inputs)
    with unchanged(inputs):
        parameters, text_bytes = training.train_parameters(texts)
    if parameters is None:
        return {"parameters": None, "text_bytes": text_bytes, "files": []}
    contents = training.parameter_files(parameters)
    listed = []
    for base_name, content in contents.items():
        with files.new_file(files.join(reading.output, f"{name}/{base_name}")) as file:
            file.write(content)
        listed.append((f"{name}/{base_name}", file.size, file.sha256))
    folder = ParametersFolder(
        path=name,
        sha256=training.checksum_of(contents),
        abbreviations=len(parameters.abbreviations),
        is_trained_here=True,
    )
    return {"parameters": dataclasses.asdict(folder), "text_bytes": text_bytes, "files": listed}


def describe_sentences(
    fragments: Sequence[Fragment], extraction: ExtractionOptions, records: Records
) -> list[dict[str, Any]]:
    """Return how the sentences of a build were split, and why, for its manifest: an entry for each choice.

    An entry holds the choice, the number of its inputs, and what its lines look like (text_profile.add_up).

    fragments: all of the build, in order; none where MLPerf's chain took WikiExtractor's files. records: theirs.
    """
    if extraction.doc_blocks:
        return [_choice_entry(named_choice(extraction.language).by_punkt_alone)]
    profiled = [pair for fragment in fragments for pair in profiles_of(fragment, records)]
    entries = []
    for text in dict.fromkeys(file.sentences for file, _ in profiled):
        choice = SentenceChoice.from_json(text)
        of_choice = [(file, profile) for file, profile in profiled if file.sentences == text]
        lines, scripts = text_profile.add_up(profile for _, profile in of_choice)
        entry = _choice_entry(choice)
        entry["inputs"] = len({file.path for file, _ in of_choice})
        entry |= {"lines": lines, "scripts": scripts, "script": script_name(next(iter(scripts), ""))}
        entry |= _languages_of(of_choice)
        if _is_by_records(entry["records"]):
            doubts = doubts_of(choice, lines, {})
        else:
            entry["part"] = script_name(part_of_other_script(choice, scripts))
            doubts = doubts_of(choice, lines, scripts)
            if choice.why == "script" and entry["likely"] and names_several(choice.script):
                doubts.append("unsure_language")
        entries.append(entry | {"doubts": doubts})
    return entries


def _languages_of(profiled: Sequence[tuple[InputFile, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return what the words of files and of their records say of their languages, for the entry of a choice."""
    told = [(file.language_sure, file.language) for file, _ in profiled if file.language]
    records: collections.Counter[str] = collections.Counter()
    for _, profile in profiled:
        records.update(profile["languages"])
    sure, language = min(told, default=(None, ""))
    ordered = sorted(records.items(), key=lambda item: (-item[1], item[0]))
    return {"sure": sure, "likely": name_of(language), "records": {name_of(code): count for code, count in ordered}}


def _is_by_records(records: Mapping[str, int]) -> bool:
    """Return whether nearly all records of a text were split by their own languages, so that the choice decided on
    few.
    """
    return bool(records) and records.get("", 0) <= _MOST_OF_NO_LANGUAGE * sum(records.values())


def sweep_trainings(entries: Sequence[Mapping[str, Any]], output: str) -> list[str]:
    """Delete the parameters that earlier builds have trained and this one does not use.

    entries: of this build, as `describe_sentences` gives them. Returns the keys of the trainings that it uses.
    """
    used = [{"parameters": entry["parameters"], "text_bytes": entry["text_bytes"]} for entry in entries]
    keys = []
    kept: set[str] = set()
    stale: set[str] = set()
    for key in completions.keys(output, KIND):
        record = completions.load(output, KIND, key)
        if record is None:
            continue
        is_used = {name: record[name] for name in ("parameters", "text_bytes")} in used
        if is_used:
            keys.append(key)
        (kept if is_used else stale).update(files.join(output, name) for name, *_ in record["files"])
    files.delete(sorted(stale - kept))
    for folder in {files.parent(path) for path in kept | stale}:
        files.delete_abandoned(folder)
    return keys


def _choice_entry(choice: SentenceChoice) -> dict[str, Any]:
    rules = choice.rules
    return {
        "language": rules.language,
        "name": choice.name,
        "why": choice.why,
        "punkt": rules.punkt,
        "stops": rules.stops,
        "words": list(rules.words),
        "parameters": None if choice.parameters is None else dataclasses.asdict(choice.parameters),
        "text_bytes": choice.text_bytes,
        "doubts": [],
    }


def doubts_of(choice: SentenceChoice, lines: Mapping[str, int], scripts: Mapping[str, int]) -> list[Doubt]:
    """Return what makes one doubt that a choice was right.

    lines, scripts: of the text that was split by it, as text_profile.add_up gives them.

    Returns:
      "long_lines": half of the lines have more than LONG_LINE characters. "cut_lines": many begin in the middle of a
      sentence. "other_script": most letters are of a script that the language is not written in. "part_other_script":
      a large part is, as where a text begins in one language and goes on in another. "unknown_script": most are of one
      whose marks are not known.
    """
    doubts: list[Doubt] = []
    if lines and lines["median_characters"] >= LONG_LINE:
        doubts.append("long_lines")
    if text_profile.is_cut(lines):
        doubts.append("cut_lines")
    script = next(iter(scripts), "")
    if not script or 2 * scripts[script] < sum(scripts.values()) or scripts[script] < _FEWEST_LETTERS:
        return doubts
    expected = choice.expected_scripts
    if expected and script not in expected:
        doubts.append("other_script")
    elif (choice.why == "script" or not expected) and script not in known_scripts():
        doubts.append("unknown_script")
    elif part_of_other_script(choice, scripts):
        doubts.append("part_other_script")
    return doubts


def part_of_other_script(choice: SentenceChoice, scripts: Mapping[str, int]) -> str:
    """Return the script, other than Latin, of a large part of a text whose language is not written in it; empty for
    none.
    """
    least = max(_FEWEST_LETTERS, _LARGE_PART * sum(scripts.values()))
    others = (script for script, letters in scripts.items() if script != "LATIN" and letters >= least)
    expected = choice.expected_scripts
    return next((script for script in others if expected and script not in expected), "")
