"""extract: a dump or another corpus → text shards, the eval set and manifest.json."""

import abc
import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.text_shards.options import Source
from pipelines.settings.options import parameters
from pipelines.settings.source_options import TextsOptions
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.stage import GraphStage, Options
from pipelines.terminal import data_warnings

if TYPE_CHECKING:
    import apache_beam as beam


DUMP, DOC_FILES = "mediawiki", "wikiextractor"  # formats of inputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextStage(GraphStage[Options]):
    """The common part of extract and of a mix of sources: both make text shards."""

    name = "extract"
    folder = "text"
    decides = ("output", "compat")

    @property
    @abc.abstractmethod
    def sources(self) -> Sequence[Source]:
        """Return the sources of the documents."""

    @property
    def decided(self) -> dict[str, Any]:
        """The extractor of each source, the share or number of the eval set, the size of the shards."""
        given, decided = self.parameters, parameters(self.options.decided)  # type: ignore[attr-defined]
        return {name: value for name, value in decided.items() if value != given[name]}

    def close(self, elements: Sequence[Any]) -> None:
        """Write eval.md5 and the manifest, and sweep."""
        from maskmill.text_shards import close_text

        close_text.close_text_shards(
            elements, self.sources, parameters=self.parameters, decided=self.decided, output=self.output
        )

    def progress(self) -> Mapping[str, str]:
        """Return languages for which Punkt is trained, templates if they are expanded, units, text shards."""
        from maskmill.extraction import template_library
        from maskmill.text import shards
        from maskmill.text_shards import fragments, sentence_choice

        return {
            "train Punkt": sentence_choice.KIND,
            "templates": template_library.PIECES,
            "extract": fragments.KIND,
            "text shards": shards.KIND,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractStage(TextStage[ExtractOptions]):
    """Input: one sequence, the inputs. Output: TextShard, the description of each shard with text.

    No input may vanish, change or be added once the checks have found them. formats: those of the inputs, in order.
    """

    options_class = ExtractOptions
    instead = TextsOptions

    formats: Sequence[str]

    @classmethod
    def check(cls, options: ExtractOptions, *, is_first: bool) -> Self:
        """Check the inputs: that they are there, and that they can be read in this way; raise as Stage.check."""
        checked = check_extraction(options)
        cls.check_output(checked.options, checked.contents)
        inputs, formats = check_inputs(checked)
        return cls(
            options=checked.options,
            read_files=inputs,
            paths=(*options.input, *checked.folder),
            contents=checked.contents,
            formats=formats,
        )

    @classmethod
    def expected_kernels(cls, options: ExtractOptions) -> Sequence[str]:
        """As if a dump is read."""
        return kernels_of(options)

    @property
    def kernels(self) -> Sequence[str]:
        """Those of the inputs."""
        return kernels_of(self.options, self.formats)

    @property
    def sources(self) -> Sequence[Source]:
        """All inputs are one."""
        return [Source(extraction=self.options.decided_extraction, max_documents=self.options.split.max_documents)]

    def source(self, pipeline: "beam.Pipeline") -> "beam.PCollection":
        """Return the inputs."""
        import apache_beam as beam

        return pipeline | "Inputs" >> beam.Create([self.read_files]).with_output_types(Sequence[files.FileInfo])

    def expand(self, elements: "beam.PCollection") -> "tuple[beam.PCollection, Sequence[beam.PCollection]]":
        """Add the steps of the default mode, or of the reference's chain."""
        from pipelines.stages import extract_steps

        if self.options.compat == "mlperf":
            from_doc_files = self.formats[0] == DOC_FILES
            return extract_steps.expand_mlperf(elements, self.options, self.output, from_doc_files=from_doc_files)
        return extract_steps.expand_extract(elements, self.options, self.output)


def kernels_of(options: ExtractOptions, formats: Sequence[str] = (DUMP,)) -> Sequence[str]:
    """Return the kernels of a dump's pages, if one is read, those of sentences, and of duplicates if they are
    dropped.
    """
    of_text: tuple[str, ...] = ("characters", "sentences")
    if options.decided_extraction.quality.finds_duplicates:
        of_text += ("text_shards",)
    if DUMP not in formats:
        return of_text
    ours = options.decided_extraction.extractor == "maskmill"
    return (*of_text, "inputs", "extraction.kernels.wikitext" if ours else "compat")


# ---- what is checked before any work


def check_language(language: str, compat: str) -> tuple[Sequence[str], dict[str, str]]:
    """Look whether sentences can be split as --language says.

    Returns:
      The folder of Punkt parameters that it names, if it names one; and the sha256 of parameters that do not come
      with the package, under `language_sha256`.

    Raises:
      UnusableInputError: they cannot.
    """
    from maskmill.sentences.choice import AUTO, named_choice
    from maskmill.sentences.punkt import installed_checksum

    if language == AUTO:
        return (), {}
    choice = named_choice(language)
    if choice.parameters is not None:
        return (language,), {"language_sha256": choice.parameters.sha256}
    if compat == "mlperf" and (choice.needs_training or choice.rules.punkt is None):
        raise UnusableInputError(
            f"--compat mlperf splits sentences by Punkt alone, and there are no parameters for --language={language}; "
            "leave --language out, or name a folder of parameters."
        )
    if choice.needs_training:
        return (), {}
    choice.splitter()
    checksum = installed_checksum(language)
    return (), {} if checksum is None else {"language_sha256": checksum}


def _read_rules(options: ExtractOptions) -> tuple[ExtractOptions, dict[str, str]]:
    """Return the options with the text of the user's own rules, and its checksum; unchanged if none are named.

    Raises:
      UnusableInputError: the file is missing or not UTF-8.
    """
    path = options.extraction.wikitext.template_rules
    if path is None:
        return options, {}
    content = files.read_bytes(path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UnusableInputError(f"{path}: this file of rules is not UTF-8; save it as UTF-8.") from None
    wikitext = dataclasses.replace(options.extraction.wikitext, rules_text=text)
    extraction = dataclasses.replace(options.extraction, wikitext=wikitext)
    checksum = hashlib.sha256(content).hexdigest()
    return dataclasses.replace(options, extraction=extraction), {"template_rules_sha256": checksum}


def _with_own_steps(options: ExtractOptions) -> tuple[ExtractOptions, dict[str, str]]:
    """Import the user's own steps; return the options and the contents with their checksum."""
    if not options.extraction.steps:
        return options, {}
    from maskmill.text_shards.own_steps import checksum

    digest = checksum(options.extraction.steps)
    extraction = dataclasses.replace(options.extraction, steps_sha256=digest)
    return dataclasses.replace(options, extraction=extraction), {"steps_sha256": digest}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extraction:
    """The findings of the checks of extract's options, its inputs aside.

    options: with the text of the user's rules. contents: as in Checked. folder: of Punkt parameters, if one is named.
    matched: the files that the inputs' patterns match.
    """

    options: ExtractOptions
    contents: Mapping[str, str]
    folder: Sequence[str]
    matched: Sequence[files.FileInfo]


def check_extraction(options: ExtractOptions) -> Extraction:
    """Check what decides the text, and that there are inputs.

    Raises:
      UnusableInputError: text cannot be extracted with these options, or there is no such input.
    """
    extraction = options.decided_extraction
    matched = files.match(options.input)  # that they are there, before more is imported
    from maskmill.inputs.found_inputs import refuse_output_among

    refuse_output_among(options.input, matched, options.output)
    if extraction.quality.near_duplicate_threshold is not None:
        from maskmill.text_shards.signatures import import_datasketch

        import_datasketch()
    if extraction.wikitext.expand_templates:
        from maskmill.extraction.lua_process import libraries_folder

        libraries_folder()
    folder, contents = check_language(extraction.language, options.compat)
    options, rules = _read_rules(options)
    options, steps = _with_own_steps(options)
    return Extraction(options=options, contents=contents | rules | steps, folder=folder, matched=matched)


def check_inputs(checked: Extraction) -> tuple[Sequence[files.FileInfo], list[str]]:
    """Check that the inputs of extract can be read in the way that its options say.

    checked: as `check_extraction` gives it.

    Returns:
      The inputs, and their formats.

    Raises:
      UnusableInputError: they cannot.
    """
    from maskmill.inputs.found_inputs import find_inputs, refuse_two_dates
    from maskmill.inputs.items import refuse_missing_columns
    from maskmill.inputs.units import plan_units

    options = checked.options
    reading = options.decided_extraction.reading
    found = find_inputs(checked.matched, options.input_format)
    inputs = found.files
    units = plan_units(inputs, input_format=options.input_format, reading=reading, allow_empty=len(inputs) > 1)
    format_of = {unit.path: unit.format for unit in units}
    formats = _formats(format_of)
    for path, name in format_of.items():
        if name not in ("jsonl", "parquet"):
            refuse_missing_columns(
                ["id", "title", *(["language", "date", "url"] if name == DUMP else [])], path, reading
            )
    is_one_dump = formats[0] != DOC_FILES and len(inputs) == 1
    if options.compat == "mlperf" and options.split.max_documents is not None and not is_one_dump:
        raise UnusableInputError("--max_documents with --compat mlperf takes one dump, not several files.")
    if options.dump_date is None:
        refuse_two_dates([file.path for file in inputs])
    _check_templates(options, [file.path for file in inputs], has_others=formats != [DUMP])
    if found.skipped:
        data_warnings.warn("extract", [found.skipped_text])
    data_warnings.warn("extract", _other_projects(dict.fromkeys(u.path for u in units if u.format == DUMP)))
    return inputs, formats


def _formats(format_of: Mapping[str, str]) -> list[str]:
    """Return the formats of the inputs, in order; files without content have none.

    Raises:
      UnusableInputError: all inputs are empty, or a part of a dump may be.
    """
    from maskmill.inputs.units import EMPTY

    formats = [name for name in dict.fromkeys(format_of.values()) if name != EMPTY]
    empty = [path for path, name in format_of.items() if name == EMPTY]
    if empty and not formats:
        raise UnusableInputError(f"{empty[0]}: this input is empty, and so are all others.")
    if empty and DUMP in formats:
        raise UnusableInputError(
            f"{empty[0]}: this input is empty, and a dump is among the others: fetch it again if it is a part of that, "
            "or leave it out."
        )
    return formats


def _other_projects(dumps: Iterable[str]) -> list[str]:
    """Return a warning for each project among dumps that is not Wikipedia."""
    from maskmill.inputs.mediawiki import read_header
    from maskmill.inputs.site import other_project

    first_of: dict[str, str] = {}
    paths = list(dumps)
    for path, header in zip(paths, files.each(paths[0] if paths else "", read_header, paths), strict=True):
        if project := other_project(header):
            first_of.setdefault(project, path)
    return [
        f"{path} is a dump of {project}, and maskmill's rules are those of Wikipedia: lists, other namespaces and "
        "templates that hold this project's text give nothing, or rubbish; read a part of the text (--max_documents "
        "100) before you train on it."
        for project, path in first_of.items()
    ]


def _check_templates(options: ExtractOptions, inputs: Sequence[str], *, has_others: bool) -> None:
    """Check the options that need a dump's templates; `has_others` tells whether an input is not a dump.

    Raises:
      UnusableInputError: an input has no templates, or the user's rules have a mistake.
    """
    extraction = options.decided_extraction
    wikitext = extraction.wikitext
    needs_templates = {
        "drop_stubs": extraction.quality.drop_stubs,
        "expand_templates": wikitext.expand_templates,
        "template_rules": wikitext.template_rules is not None,
        "report_templates": wikitext.report_templates,
    }
    for name, is_on in needs_templates.items():
        if is_on and has_others:
            raise UnusableInputError(f"--{name} needs the templates of a dump; leave it out for this input.")
    if wikitext.template_rules is not None:
        from maskmill.extraction.template_rules import check_rules
        from maskmill.inputs.mediawiki import read_header
        from maskmill.inputs.site import Site

        languages = {Site.parse(read_header(path)).language for path in inputs}
        check_rules(wikitext.rules_text, wikitext.template_rules, sorted(languages))
