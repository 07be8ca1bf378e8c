"""Open text shards as a data set: write an index of their rows (spans) the first time, and keep it."""

import dataclasses
import difflib
import hashlib
import logging
import os
from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.example_shards.close_examples import close_examples
from maskmill.example_shards.example_shards import ExamplesSetup, write_example_shard
from maskmill.kernels import compiler
from maskmill.masking.objective_options import ObjectiveOptions, decided_mask_unit
from maskmill.masking.option_rules import conflicts, defaults_of
from maskmill.masking.options import MaskingOptions
from maskmill.reading.disk_cache import default_directory
from maskmill.records.examples import kernels_of
from maskmill.records.options import FormatOptions
from maskmill.storage import completions, files, manifest
from maskmill.storage.files import FileInfo
from maskmill.text.text_files import check_texts, describe_text_shard, find_texts, refuse_equal_names
from maskmill.tokenization.vocabulary import is_tokenizer

_log = logging.getLogger(__name__)

_PARTS = (MaskingOptions, ObjectiveOptions, FormatOptions)
_FIXED = {"format": "spans", "dynamic_masking": True, "unicode": "15.1.0", "duplicate_pieces": "last"}
_MUCH_TEXT = 256 << 20  # bytes from which on an index takes a while


def index_of_text(path: str, tokenizer: str, options: Mapping[str, Any], index_dir: str | None) -> str:
    """Return the directory of the examples of text shards, in spans; write them if they do not exist.

    One process writes them, and others that need the same wait for it. They are those of `maskmill examples --format
    spans` with the same options.

    Args:
      path: of the text shards: the directory that extract made, a file, or a glob.
      tokenizer: the path of a vocab.txt or a tokenizer.json.
      options: of `maskmill examples`, by name.
      index_dir: the directory of this machine below which the examples are kept; None: the user's cache directory.

    Raises:
      UnusableInputError: the text, the tokenizer or an option cannot be used.
      RunFailedError: a file cannot be written.
    """
    place = os.path.join(os.path.dirname(default_directory()), "spans") if index_dir is None else index_dir
    if not files.is_local(place):
        raise UnusableInputError(f"{place}: index_dir must be a directory of this machine.")
    setup = _setup_of(tokenizer, options)
    texts = find_texts([path])
    refuse_equal_names(texts)
    check_texts(texts, [path])
    directory = os.path.join(os.path.expanduser(place), _key_of(setup, texts))
    os.makedirs(directory, exist_ok=True)
    with manifest.locked(directory):
        if not _is_complete(directory):
            _make(texts, setup, directory)
    return directory


def _setup_of(tokenizer: str, options: Mapping[str, Any]) -> ExamplesSetup:
    """Return the setup of the examples; raise UnusableInputError for an unknown option or a conflict."""
    names = {field.name: part for part in _PARTS for field in dataclasses.fields(part)}
    for name in options:
        if name not in names or name in _FIXED:
            nearest = difflib.get_close_matches(name, names.keys() - _FIXED.keys(), n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest and name not in _FIXED else "."
            raise UnusableInputError(f"{name}: this is no option of rows that are made when text is opened{hint}")
    values = {**options, **_FIXED}
    values = {**defaults_of(values), **values}
    of_part = {part: {name: value for name, value in values.items() if names[name] is part} for part in _PARTS}
    masking, objective = MaskingOptions(**of_part[MaskingOptions]), ObjectiveOptions(**of_part[ObjectiveOptions])
    for conflict in conflicts(masking, objective):
        raise UnusableInputError(conflict)
    content = files.read_bytes(tokenizer)
    return ExamplesSetup(
        vocab_file=tokenizer,
        vocab_sha256=hashlib.sha256(content).hexdigest(),
        masking=masking,
        objective=objective,
        format=FormatOptions(**of_part[FormatOptions]),
        one_seed=False,
        packed=False,
        is_tokenizer=is_tokenizer(content),
    )


def _key_of(setup: ExamplesSetup, texts: list[FileInfo]) -> str:
    """Return a name for the examples of texts in their current versions."""
    version = completions.FORMAT_VERSIONS["examples"], setup.plan.shard_format.version
    listed = [
        [os.path.abspath(text.path) if files.is_local(text.path) else text.path, text.size, text.changed, text.version]
        for text in texts
    ]
    vocabulary = setup.vocab_sha256, setup.vocabulary().special_ids
    return completions.fingerprint("text index", version, listed, vocabulary, setup.plan)


def _is_complete(directory: str) -> bool:
    """Return whether a directory has examples, with all their files."""
    found = manifest.find_manifest(directory)
    listed = [file for shard in found["shards"] for file in manifest.files_of_shard(shard)] if found else []
    sizes = files.sizes_in(directory) if listed else {}
    return found is not None and all(sizes.get(files.join(directory, file["name"])) == file["bytes"] for file in listed)


def _make(texts: list[FileInfo], setup: ExamplesSetup, directory: str) -> None:
    size = sum(text.size for text in texts)
    level = logging.WARNING if size > _MUCH_TEXT else logging.INFO
    message = "%s: an index of its rows is written now, once, of %s MB of text; `maskmill examples` uses more cores."
    _log.log(level, message, files.parent(texts[0].path), f"{size / 1e6:,.0f}")
    compiler.prepare(kernels_of(setup.plan, setup.loaded().kernels))
    described = map(describe_text_shard, enumerate(text.path for text in texts))
    shards = [write_example_shard(shard, setup, directory) for shard in described]
    masking, option = setup.masking, "tokenizer_file" if setup.is_tokenizer else "vocab_file"
    parts = masking, setup.objective, setup.format
    parameters = {name: value for part in parts for name, value in dataclasses.asdict(part).items()}
    parameters |= {option: setup.vocab_file, f"{option}_sha256": setup.vocab_sha256}
    decided = {"mask_unit": decided_mask_unit(masking, setup.objective), "unicode": masking.unicode, "one_seed": False}
    close_examples(shards, setup, parameters=parameters, decided=decided, output=directory)
