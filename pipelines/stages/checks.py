"""What each stage looks at before any work: inputs, vocabularies, extras that are needed, the output directory.

pipelines/stages/registry.py names these functions. They run before Beam is imported, so that a mistake in a command is
named at once. What needs no compiled code comes first; modules that need it are imported by the functions that use
them.
"""

import contextlib
import dataclasses
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files, manifest
from maskmill.storage.paths import is_glob
from pipelines.running import startup
from pipelines.running.workload import Workload
from pipelines.settings.options import option_defaults, parameters
from pipelines.settings.source_options import MixOptions
from pipelines.settings.stage_options import (
    Compat,
    EvalOptions,
    ExamplesOptions,
    ExtractOptions,
    VocabularyStageOptions,
    decided_masking,
)
from pipelines.terminal import data_warnings
from training.options import TrainOptions
from transforms.vocabularies.options import VocabularyOptions

# A shard grows about 18-fold at dupe 10: count it as that much work.
_WORK_A_BYTE = 10
# Counting words is so quick, 110 MB a second, that it takes much text to make up for the start of a second process.
_BYTES_OF_COUNTING = 16
# Matrix units take multiples of this at full speed.
_SIZE_MULTIPLE = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked:
    """A stage whose options and inputs were looked at.

    Attributes:
      options: the stage's options.
      workload: how much the stage has to do, as far as that can be told.
      contents: the sha256 of what an option X names, as `X_sha256`.
      unclaimed: the options, and those of `contents`, with which the output directory may be run again at other values.
      found: what the look has found, fields of the stage's implementation by name.
      announcement: a line that says at once what the stage reads.
    """

    options: Any
    workload: Workload
    contents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unclaimed: Sequence[str] = ()
    found: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    announcement: str = ""


def _check_output(
    stage: str,
    options: Any,
    contents: Mapping[str, str],
    folders: Sequence[str] = (),
    unclaimed: Sequence[str] = (),
) -> None:
    """Looks whether the output directory and folders below it can be claimed for these options; changes nothing.

    Raises:
      UnusableInputError: it cannot.
    """
    without = ("output", *unclaimed)
    wanted, defaults = parameters(options, without=without), option_defaults(type(options), without=without)
    manifest.check_output(options.output, stage, {**wanted, **contents}, {**defaults, **contents}, folders)


def check_language(language: str, compat: str) -> tuple[Sequence[str], dict[str, str]]:
    """Looks whether sentences can be split as --language says.

    Returns:
      The folder of Punkt parameters that it names, where it names one; and the sha256 of parameters that do not come
      with the package, under `language_sha256`.

    Raises:
      UnusableInputError: they cannot.
    """
    from transforms.sentences.choice import AUTO, named_choice
    from transforms.sentences.punkt import installed_checksum

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
    """The options with the text of the user's own rules, and its checksum; as they are where none are named.

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extraction:
    """What the checks of options of extract, its inputs aside, have found.

    options: with the text of the user's rules. contents: as in Checked. folder: of Punkt parameters, if one is named.
    """

    options: ExtractOptions
    contents: Mapping[str, str]
    folder: Sequence[str]


def check_extraction(options: ExtractOptions) -> Extraction:
    """Checks what decides the text, and that there are inputs.

    Raises:
      UnusableInputError: text cannot be extracted with these options, or there is no such input.
    """
    extraction = options.decided_extraction
    files.match(options.input)  # that they are there, before more is imported
    if extraction.quality.near_duplicate_threshold is not None:
        from transforms.shards.signatures import import_datasketch

        import_datasketch()
    if options.compat == "mlperf":
        _ = options.mlperf  # its own checks
    folder, contents = check_language(extraction.language, options.compat)
    options, rules = _read_rules(options)
    return Extraction(options=options, contents=contents | rules, folder=folder)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Inputs:
    """The inputs of extract, and what they are."""

    files: Sequence[files.FileInfo]
    from_doc_files: bool
    reads_pages: bool

    @property
    def size(self) -> int:
        """The bytes of all."""
        return sum(file.size for file in self.files)


def _check_inputs(options: ExtractOptions) -> _Inputs:
    """Checks that the inputs of extract can be read in the way that its options say.

    Raises:
      UnusableInputError: they cannot.
    """
    from transforms.inputs.found_inputs import find_inputs, refuse_two_dates
    from transforms.inputs.units import plan_units

    reading = options.extraction.reading
    found = find_inputs(options.input, options.input_format)
    inputs = found.files
    units = plan_units(inputs, input_format=options.input_format, reading=reading, allow_empty=len(inputs) > 1)
    formats = _formats({unit.path: unit.format for unit in units})
    from_doc_files = formats[0] == "wikiextractor"
    if options.compat == "mlperf" and options.split.max_documents is not None and (from_doc_files or len(inputs) > 1):
        raise UnusableInputError("--max_documents with --compat mlperf takes one dump, not several files.")
    if options.dump_date is None:
        refuse_two_dates([file.path for file in inputs])
    _check_templates(options, [file.path for file in inputs], has_others=formats != ["mediawiki"])
    if found.skipped:
        data_warnings.warn("extract", [found.skipped_text])
    data_warnings.warn("extract", _other_projects(dict.fromkeys(u.path for u in units if u.format == "mediawiki")))
    return _Inputs(
        files=inputs,
        from_doc_files=from_doc_files,
        reads_pages="mediawiki" in formats,
    )


def _formats(format_of: Mapping[str, str]) -> list[str]:
    """The formats of the inputs, in order; files without content have none.

    Raises:
      UnusableInputError: all inputs are empty, or a part of a dump may be.
    """
    from transforms.inputs.units import EMPTY

    formats = [name for name in dict.fromkeys(format_of.values()) if name != EMPTY]
    empty = [path for path, name in format_of.items() if name == EMPTY]
    if empty and not formats:
        raise UnusableInputError(f"{empty[0]}: this input is empty, and so are all others.")
    if empty and "mediawiki" in formats:
        raise UnusableInputError(
            f"{empty[0]}: this input is empty, and a dump is among the others: fetch it again if it is a part of that, "
            "or leave it out."
        )
    return formats


def _other_projects(dumps: Iterable[str]) -> list[str]:
    """A warning for each project among dumps that is no Wikipedia."""
    from transforms.inputs.mediawiki import read_header
    from transforms.inputs.site import other_project

    first_of: dict[str, str] = {}
    for path in dumps:
        if project := other_project(read_header(path)):
            first_of.setdefault(project, path)
    return [
        f"{path} is a dump of {project}, and maskmill's rules are those of Wikipedia: lists, other namespaces and "
        "templates that hold this project's text give nothing, or rubbish; read a part of the text (--max_documents "
        "100) before you train on it."
        for project, path in first_of.items()
    ]


def _check_templates(options: ExtractOptions, inputs: Sequence[str], *, has_others: bool) -> None:
    """Checks the options that need a dump's templates; `has_others` tells whether an input is not a dump.

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
        from transforms.extraction.template_rules import check_rules
        from transforms.inputs.mediawiki import read_header
        from transforms.inputs.site import Site

        languages = {Site.parse(read_header(path)).language for path in inputs}
        check_rules(wikitext.rules_text, wikitext.template_rules, sorted(languages))


def extract(options: ExtractOptions, *, is_first: bool) -> Checked:
    """Checks the inputs of extract: that they are there, and that they can be read in this way.

    Raises:
      UnusableInputError: extract cannot run with these options or inputs.
    """
    checked = check_extraction(options)
    _check_output("extract", checked.options, checked.contents)
    inputs = _check_inputs(checked.options)
    return Checked(
        options=checked.options,
        workload=Workload(
            input_bytes=inputs.size, pieces=None, paths=(*options.input, *checked.folder, options.output)
        ),
        contents=checked.contents,
        found={
            "inputs": inputs.files,
            "from_doc_files": inputs.from_doc_files,
            "reads_pages": inputs.reads_pages,
        },
        announcement=startup.first_line("extract", files=len(inputs.files), size=inputs.size, output=options.output),
    )


def mix(options: MixOptions, *, is_first: bool) -> Checked:
    """Checks the inputs of extract where it mixes sources: those of each source, and that no two sources share one.

    Raises:
      UnusableInputError: a source cannot be extracted with its options or inputs, or two sources share an input.
    """
    checked: dict[str, Extraction] = {}
    for source in options.sources:
        with _of_source(source.name):
            checked[source.name] = check_extraction(source.extract)
    sources = tuple(dataclasses.replace(s, extract=checked[s.name].options) for s in options.sources)
    options = dataclasses.replace(options, sources=sources)
    contents = {f"sources.{name}.{key}": value for name, one in checked.items() for key, value in one.contents.items()}
    manifest.check_output(
        options.output, "extract", {**options.parameters, **contents}, {**options.defaults, **contents}
    )
    inputs: dict[str, _Inputs] = {}
    for source in sources:
        with _of_source(source.name):
            inputs[source.name] = _check_inputs(source.extract)
    _refuse_common_inputs(inputs)
    size = sum(of_source.size for of_source in inputs.values())
    number = sum(len(of_source.files) for of_source in inputs.values())
    paths = [path for source in sources for path in (*source.extract.input, *checked[source.name].folder)]
    return Checked(
        options=options,
        workload=Workload(input_bytes=size, pieces=None, paths=(*paths, options.output)),
        contents=contents,
        found={
            "inputs": {name: of_source.files for name, of_source in inputs.items()},
            "reads_pages": {name: of_source.reads_pages for name, of_source in inputs.items()},
        },
        announcement=startup.first_line("extract", files=number, size=size, output=options.output),
    )


@contextlib.contextmanager
def _of_source(name: str) -> Iterator[None]:
    """Names the source in the errors of its checks."""
    try:
        yield
    except UnusableInputError as error:
        raise UnusableInputError(f"sources.{name}: {error}") from None


def _refuse_common_inputs(inputs: Mapping[str, _Inputs]) -> None:
    """Raises UnusableInputError if two sources, by their names, have an input in common."""
    seen: dict[str, str] = {}
    for name, of_source in inputs.items():
        for path in (file.path for file in of_source.files):
            other = seen.setdefault(os.path.realpath(path) if files.is_local(path) else path, name)
            if other != name:
                raise UnusableInputError(
                    f"{path}: sources.{other} and sources.{name} both take this input, so articles that one of them "
                    "holds out would be trained on in the other; leave it to one of them, and raise max_epochs to "
                    "repeat it."
                )


def check_given_texts(patterns: Sequence[str], compat: Compat) -> None:
    """Checks that a build can make examples of text shards that exist, before it makes a vocabulary of them.

    Raises:
      UnusableInputError: two have the same name, or manifests tell that they were made for other data.
    """
    from maskmill.text.text_files import find_texts, refuse_equal_names

    refuse_equal_names(find_texts(patterns))
    for pattern in patterns:
        made = None if is_glob(pattern) else manifest.find_manifest(pattern)
        if made is None or made["stage"] != "extract" or compat == "none":
            continue
        of_texts = made["parameters"].get("compat", "none")
        if of_texts != compat:
            raise UnusableInputError(
                f"{pattern}: this text was extracted with compat {of_texts}, and the build has compat {compat}; "
                f"extract it with compat {compat}, or leave compat out."
            )


def vocabulary(options: VocabularyStageOptions, *, is_first: bool) -> Checked:
    """Checks the text shards of a vocabulary, where they are there already, and what is wanted beside it.

    Raises:
      UnusableInputError: a vocabulary cannot be made with these options or of these texts.
    """
    from maskmill.text.text_files import beside_texts, check_texts, find_texts, kind_of_text

    texts = find_texts(options.input) if is_first else []
    check_texts(texts, options.input)
    if is_first and not any(text.size for text in texts if kind_of_text(text.path) == "train"):
        raise UnusableInputError(
            f"{options.input[0]}: there is no text to learn a vocabulary from; name text shards that are neither empty "
            "nor held out (eval.txt)."
        )
    for path in options.compare:
        _check_compared(path)
    _check_model_directory(options)
    if options.transform_fn:
        check_transform_installed()
    _check_output("vocabulary", options, {}, unclaimed=options.ADDITIONS)
    _note_size(options.vocabulary)
    skipped = beside_texts(options.input) if is_first else []
    if skipped:
        data_warnings.warn("vocabulary", [f"{', '.join(skipped)}: skipped, because they are no text shards."])
    size = sum(text.size for text in texts)
    model_dir = () if options.model_dir is None else (options.model_dir,)
    read = options.input if is_first else ()
    return Checked(
        options=options,
        workload=Workload(
            input_bytes=size // _BYTES_OF_COUNTING,
            pieces=len(texts) if is_first else None,
            paths=(*read, *options.compare, *model_dir, options.output),
        ),
        unclaimed=options.ADDITIONS,
        found={"texts": texts},
        announcement=startup.first_line("vocabulary", files=len(texts), size=size, output=options.output),
    )


def _check_compared(path: str) -> None:
    """Raises UnusableInputError if a file is no vocabulary that a report can measure."""
    from maskmill.tokenization.tokenizers import load_tokenizer
    from maskmill.tokenization.vocabulary import load_vocabulary

    if path.endswith(".json"):
        load_tokenizer(path, files.read_bytes(path))
    else:
        load_vocabulary(path)


def _check_model_directory(options: VocabularyStageOptions) -> None:
    """Looks whether --model_dir is free, or holds what an earlier run into this output has written there.

    Raises:
      UnusableInputError: it holds something else, as the files of a trained model, which would be lost.
    """
    if options.model_dir is None:
        return
    made = manifest.find_manifest(options.output) or {}
    ours = {entry["name"]: entry["sha256"] for entry in made.get("model_files", ())}
    for path in files.list_directory(options.model_dir):
        name = files.base_name(path)
        if not path.endswith(files.TEMPORARY_SUFFIX) and (name not in ours or files.sha256_of(path) != ours[name]):
            raise UnusableInputError(
                f"{options.model_dir}: this directory holds a file that no run into {options.output} has written "
                f"({name}); name an empty or a new one for --model_dir."
            )


def _note_size(options: VocabularyOptions) -> None:
    """Names the nearest multiple of 64 where the size of a vocabulary is none."""
    size = options.decided_size
    if size % _SIZE_MULTIPLE:
        nearest = _SIZE_MULTIPLE * max(1, round(size / _SIZE_MULTIPLE))
        note = f"--size {size:,} is no multiple of {_SIZE_MULTIPLE}, and models train faster with one: {nearest:,}."
        data_warnings.warn("vocabulary", [note])


def examples_to_come(options: ExamplesOptions) -> None:
    """Checks of examples what does not need their vocabulary, which the build has yet to make.

    Raises:
      UnusableInputError: the output directory is another stage's, or made with other options.
    """
    from maskmill.records.plan import ExamplesPlan

    masking = decided_masking(options.masking, options.compat)
    plan = ExamplesPlan(masking=masking, objective=options.objective, format=options.format)
    _check_output("examples", options, {}, plan.folders)


def examples(options: ExamplesOptions, *, is_first: bool) -> Checked:
    """Checks the vocabulary of examples, and the text shards where they are there already.

    Raises:
      UnusableInputError: examples cannot run with these options, this vocabulary or these texts.
    """
    from maskmill.text.text_files import beside_texts, check_texts, find_texts, refuse_equal_names

    texts = find_texts(options.input) if is_first else []
    refuse_equal_names(texts)
    name, path = options.tokenizer
    if files.is_local(path):
        files.read_bytes(path)  # a mistyped path is refused before kernels are imported
    from maskmill.records.plan import ExamplesPlan
    from maskmill.records.tokenizing import load_tokenization

    check_texts(texts, options.input)
    skipped = beside_texts(options.input) if is_first else []
    masking = decided_masking(options.masking, options.compat)
    loaded = load_tokenization(path, masking, is_tokenizer=name == "tokenizer_file")
    vocabulary = loaded.vocabulary
    contents = {f"{name}_sha256": vocabulary.sha256}
    plan = ExamplesPlan(masking=masking, objective=options.objective, format=options.format)
    _check_output("examples", options, contents, plan.folders)
    data_warnings.warn(
        "examples", data_warnings.warnings_of_vocabulary(vocabulary, do_lower_case=masking.do_lower_case)
    )
    if skipped:
        data_warnings.warn("examples", [f"{', '.join(skipped)}: skipped, because they are no text shards."])
    read = options.input if is_first else ()
    size = sum(text.size for text in texts)
    return Checked(
        options=options,
        workload=Workload(
            input_bytes=_WORK_A_BYTE * size,
            pieces=len(texts) if is_first else None,
            paths=(*read, path, options.output),
        ),
        contents=contents,
        found={"tokenizer_kernels": loaded.kernels, "texts": texts},
        announcement=startup.first_line("examples", files=len(texts), size=size, output=options.output),
    )


def made_examples(options: ExamplesOptions) -> Checked:
    """What decided the examples that a build has made and now picks eval examples of.

    Raises:
      UnusableInputError: their vocabulary cannot be used.
    """
    name, path = options.tokenizer
    digest = hashlib.sha256(files.read_bytes(path)).hexdigest()
    workload = Workload(input_bytes=0, pieces=None, paths=(options.output,))
    return Checked(
        options=options,
        workload=workload,
        contents={f"{name}_sha256": digest},
        found={"tokenizer_kernels": ()},
    )


def eval_set(options: EvalOptions, *, is_first: bool) -> Checked:
    """Checks the output of a build's eval stage; its examples are not there yet.

    Raises:
      UnusableInputError: the output directory is another stage's, or made with other options.
    """
    _check_output("eval", options, {})
    return Checked(options=options, workload=Workload(input_bytes=0, pieces=None, paths=(options.output,)))


def train(options: TrainOptions, *, is_first: bool) -> Checked:
    """Checks what a training at the end of a build needs.

    Args:
      options: of the training.
      is_first: whether the examples are there already.

    Raises:
      UnusableInputError: an extra is missing, or there is no such model.
    """
    from training import preflight

    preflight.check(options, has_input=is_first)
    if options.launcher is None:
        check_training_installed()
    return Checked(options=options, workload=Workload(input_bytes=0, pieces=None, paths=(options.output_dir,)))


def check_transform_installed() -> None:
    """Raises UnusableInputError where TensorFlow or TensorFlow Transform is missing."""
    missing = [name for name in ("tensorflow", "tensorflow_transform") if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInputError(f"--transform_fn needs {missing[0]}; install it: pip install 'maskmill[tensorflow]'.")


def check_training_installed() -> None:
    """Raises UnusableInputError where the libraries of the extra [tensorflow] are missing."""
    missing = [name for name in ("tensorflow", "keras", "keras_hub") if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInputError(f"Training needs {missing[0]}; install it: pip install 'maskmill[tensorflow]'.")
