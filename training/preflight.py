"""The checks of a training that need no backend. They take less than a second and come before anything else.

Files on an object store are checked later.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence

from maskmill.errors import UnusableInputError
from maskmill.records.file_names import lies_beside
from maskmill.storage import files, paths
from training.config import BERT_CONFIG, ModelConfig, from_json, from_preset
from training.devices import check_coordinator
from training.options import ConvertOptions, TrainOptions

# Of a data set, and of a build.
_MANIFESTS = ("manifest.json", "examples/manifest.json")
_GZIP_MAGIC = b"\x1f\x8b"
# A record of a TFRecord file begins with its length, and 16 bytes do not belong to the example itself.
_LENGTH_BYTES, _FRAME_BYTES = 8, 16
_TENSORFLOW_SUFFIXES = (".index", ".meta")


def check(options: TrainOptions, *, has_input: bool = True) -> None:
    """Check the files that a training names, its model and its output directory, without changing anything.

    Existing examples are checked, too (`has_input`); a build makes them before it trains.

    Raises:
      UnusableInputError: one of them cannot be used; the message says which, and why.
    """
    if options.launcher is not None:
        return  # the paths are those of other machines
    named = [options.output_dir, options.bert_config_file, options.vocab_file, options.tokenizer_file]
    for path in (*named, options.init_checkpoint, options.checkpoint):
        _check_scheme(path)
    for path in (*options.input_file, *options.eval_file) if has_input else ():
        if not paths.is_web(path):
            _check_scheme(path)
    if options.program:
        _check_program(options.program)
    else:
        named_model(options)
    for checkpoint in (options.init_checkpoint, options.checkpoint):
        if checkpoint is not None:
            check_checkpoint(checkpoint)
    if has_input:
        for patterns in (() if options.eval_only else options.input_file, options.eval_file):
            for pattern in patterns:
                _check_examples(pattern, options, is_alone=len(patterns) == 1)
    check_coordinator(options.coordinator)
    _check_output_directory(options.output_dir)
    if options.profile is not None and not files.is_local(options.output_dir):
        raise UnusableInputError("--profile writes to a local --output_dir only; give one, or leave it out.")


def check_conversion(options: ConvertOptions) -> None:
    """Check the files that a conversion names.

    Raises:
      UnusableInputError: one of them cannot be used; the message says which, and why.
    """
    for path in (options.input, options.output, options.bert_config_file, options.vocab_file, options.tokenizer_file):
        _check_scheme(path)
    _check_not_over_input(options)
    check_checkpoint(options.input)
    if options.bert_config_file is not None and files.is_local(options.bert_config_file):
        from_json(files.read_bytes(options.bert_config_file), where=options.bert_config_file)
    directory = options.output if options.format == "huggingface" else files.parent(options.output)
    if options.format != "huggingface" and files.is_local(options.output) and os.path.isdir(options.output):
        kind = "file" if options.format == "maskmill" else "prefix"
        raise UnusableInputError(f"--output {options.output} is a directory; name the {kind} of the checkpoint in it.")
    _check_output_directory(directory, "--output")


def _check_not_over_input(options: ConvertOptions) -> None:
    """Refuse a conversion that would overwrite its checkpoint, or the configuration beside it."""
    read = [options.input, *([options.bert_config_file] if options.bert_config_file else [])]
    if options.format == "huggingface":
        files.check_outputs(read, [options.output])
        return
    directory = files.parent(options.output) or "."
    files.check_outputs(read, [options.output, files.join(directory, BERT_CONFIG)])
    of_input = options.input if os.path.isdir(options.input) else files.parent(options.input) or "."
    if options.format == "maskmill" or os.path.realpath(of_input) != os.path.realpath(directory):
        return
    for name in (BERT_CONFIG, "checkpoint"):  # which TensorFlow's formats bring
        if os.path.exists(os.path.join(directory, name)):
            raise UnusableInputError(
                f"--output {options.output}: this is the directory of the input, whose {name} would be replaced; name "
                "another directory."
            )


def named_model(options: TrainOptions) -> ModelConfig | None:
    """Return the model named by a preset or a local file; None for that of a checkpoint or a remote file.

    Raises:
      UnusableInputError: there is none, or it does not fit the vocabulary.
    """
    named = options.preset or options.bert_config_file or options.init_checkpoint or options.checkpoint
    if named is None and not options.eval_only:
        raise UnusableInputError("No model was named: give --preset, --bert_config_file or --init_checkpoint.")
    named_vocabulary = options.vocab_file or options.tokenizer_file
    size = None
    if named_vocabulary is not None and files.is_local(named_vocabulary):
        size = vocabulary_size(options)
    if options.preset is not None:
        config = from_preset(options.preset, vocab_size=options.vocab_size or size)
    elif options.bert_config_file is not None and files.is_local(options.bert_config_file):
        config = from_json(files.read_bytes(options.bert_config_file), where=options.bert_config_file)
    else:
        return None
    check_vocabulary_size(named_vocabulary, size, config)
    return config


def _check_program(program: Sequence[str]) -> None:
    """Check that a program and its scripts exist."""
    if shutil.which(program[0]) is None:
        raise UnusableInputError(f"--program {program[0]}: nothing of this name can be run; correct the command.")
    for argument in program[1:]:
        if argument.endswith(".py") and not argument.startswith("-") and not os.path.isfile(argument):
            raise UnusableInputError(f"--program: there is no file {argument} in {os.getcwd()}; correct the command.")


def vocabulary_size(options: TrainOptions) -> int | None:
    """Return the size of the vocabulary that the options name; None if they name none.

    Raises:
      UnusableInputError: it cannot be used.
    """
    if options.vocab_file is not None:
        from maskmill.tokenization.vocabulary import load_vocabulary

        return load_vocabulary(options.vocab_file).size
    if options.tokenizer_file is not None:
        from maskmill.tokenization.tokenizers import load_tokenizer

        return load_tokenizer(options.tokenizer_file, files.read_bytes(options.tokenizer_file)).vocabulary.size
    return None


def check_vocabulary_size(path: str | None, size: int | None, config: ModelConfig) -> None:
    """Check that a model has a row for each token of the vocabulary.

    Raises:
      UnusableInputError: the vocabulary is larger.
    """
    if size is not None and size > config.vocab_size:
        raise UnusableInputError(
            f"{path}: this vocabulary has {size} tokens, but the model only {config.vocab_size} (vocab_size); give "
            "the model's own vocabulary."
        )


def check_checkpoint(path: str) -> None:
    """Check that a local file, directory or TensorFlow checkpoint of this name exists; others are checked later.

    Raises:
      UnusableInputError: there is none, or it is not accessible.
    """
    if not files.is_local(path):
        return
    path = os.path.expanduser(path.rstrip("/") or path)
    for name in (path, *(path + suffix for suffix in _TENSORFLOW_SUFFIXES)):
        try:
            os.stat(name)
            return
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UnusableInputError(f"{path}: this checkpoint cannot be read ({error.strerror}).") from None
    raise no_such_checkpoint(path)


def no_such_checkpoint(path: str) -> UnusableInputError:
    """Return the error for a checkpoint that does not exist."""
    return UnusableInputError(
        f"{path}: there is no such checkpoint; name a TensorFlow checkpoint's prefix, a file or a directory."
    )


def _check_scheme(path: str | None) -> None:
    """Refuse a path that is neither local nor in a supported store."""
    if path is not None and not files.is_local(path):
        paths.check_scheme(path)


def _check_examples(pattern: str, options: TrainOptions, *, is_alone: bool) -> None:
    """Check that a local pattern matches files that look like examples, or is the directory of a data set."""
    if not files.is_local(pattern):
        return
    expanded = os.path.expanduser(pattern)
    if os.path.isdir(expanded):
        if not any(os.path.exists(os.path.join(expanded, name)) for name in _MANIFESTS):
            raise UnusableInputError(
                f"{pattern}: this directory has no manifest.json, which the directory of a data set has; name the "
                f"examples in it, like '{pattern}/part-*'."
            )
        if not is_alone:
            raise UnusableInputError(f"{pattern}: this data set is not the only thing that is named; name it alone.")
        return
    found = [path for path in paths.expand(expanded) if os.path.isfile(path) and not lies_beside(path)]
    if not found:
        raise UnusableInputError(f"{pattern}: no examples match; check the path.")
    for path in found:
        if path.endswith(".tsv"):
            _check_tsv(path, options)
        else:
            _check_tfrecord(path)


def _check_tsv(path: str, options: TrainOptions) -> None:
    if options.task != "classify":
        raise UnusableInputError(f"{path}: TSV files go with --task classify; pre-training needs TFRecords.")
    if options.vocab_file is None:
        raise UnusableInputError(f"{path}: a TSV file must be tokenized; give --vocab_file, the vocabulary.")


def _check_tfrecord(path: str) -> None:
    """Check that the first record ends within the file. A text's first bytes, for example, are an immense length."""
    with files.open_input(path) as file:
        head = file.read(_LENGTH_BYTES)
    if not head or head.startswith(_GZIP_MAGIC):
        return
    if _FRAME_BYTES + int.from_bytes(head, "little") > files.size(path):
        raise UnusableInputError(
            f"{path}: this is no TFRecord of examples; leave the file out, or for Parquet and MDS name their directory."
        )


def _check_output_directory(directory: str, flag: str = "--output_dir") -> None:
    """Check that a local directory can be made and written, by writing there or in its nearest existing parent.

    The directory itself is not made: several hosts may check it at once, and no file is left.
    """
    if not files.is_local(directory):
        return
    nearest = directory or "."
    try:
        while not _exists(nearest):
            nearest = os.path.dirname(nearest.rstrip("/")) or "."
        if not os.path.isdir(nearest):
            raise NotADirectoryError
        with tempfile.TemporaryDirectory(dir=nearest):
            pass
    except NotADirectoryError:
        raise UnusableInputError(f"{flag} {directory}: there is a file of this name; name a directory.") from None
    except OSError as error:
        raise UnusableInputError(
            f"{flag} {directory}: nothing can be written there ({error.strerror}); name another directory."
        ) from None


def _exists(path: str) -> bool:
    """Return whether something exists at a path, even a link in a loop; raise all errors but a missing file's."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return os.path.islink(path)
    return True
