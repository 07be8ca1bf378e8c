"""The files of a tokenizer in a Hugging Face directory, which `AutoTokenizer` needs.

The tokenizer is that of the examples: BERT's WordPiece with the vocabulary that the model was trained with, or any
tokenizer.json. WordPiece is described twice: in `tokenizer.json` for Hugging Face's tokenizers, and in `vocab.txt` for
programs that read BERT's own file.
"""

import json
from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.tokenization import tokenizer_json
from maskmill.tokenization.special_tokens import named_roles, roles_of
from maskmill.tokenization.vocabulary import Vocabulary, load_vocabulary, parse_vocabulary, vocabulary_lines
from training import storage
from training.config import ModelConfig
from training.options import ConvertOptions
from training.preflight import check_vocabulary_size

VOCABULARY = "vocab.txt"
TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
# The files of any tokenizer of Hugging Face's.
_FILES = (TOKENIZER, CONFIG, SPECIAL_TOKENS, "added_tokens.json", VOCABULARY, "vocab.json", "merges.txt")


def of_conversion(
    options: ConvertOptions, *, beside: str, run: Mapping[str, Any], model: ModelConfig
) -> dict[str, bytes]:
    """Return the tokenizer's files for a conversion: their contents by name.

    Args:
      options: they may name a vocabulary or a tokenizer.json; by default the tokenizer or the vocabulary beside the
        input is used. They also say whether text is lower-cased; by default as in the run, or if no token has a capital
        letter.
      beside: the directory of the input.
      run: the settings of the input's run if it is a run's checkpoint.
      model: the model's configuration.

    Raises:
      UnusableInputError: there is no vocabulary, it cannot be used, or it is larger than the model's.
    """
    if options.tokenizer_file is not None:
        found = _found(files.parent(options.tokenizer_file)) | {TOKENIZER: files.read_bytes(options.tokenizer_file)}
        return _completed(found, options.tokenizer_file, model)
    vocabulary, do_lower_case = options.vocab_file, options.do_lower_case
    if do_lower_case is None:
        do_lower_case = run.get("do_lower_case")
    if vocabulary is None and do_lower_case is None:
        found = _found(beside)
        if TOKENIZER in found:
            return _completed(found, files.join(beside, TOKENIZER), model)
        if set(found) - {VOCABULARY}:
            return found
    if vocabulary is None:
        vocabulary = files.join(beside, VOCABULARY)
        if not files.exists(vocabulary):
            raise UnusableInputError(
                f"--vocab_file is missing: there is no {VOCABULARY} in {beside or '.'}, and without the vocabulary "
                "Hugging Face's tokenizer would know no word."
            )
    return of_vocabulary(vocabulary, do_lower_case, model)


def of_vocabulary(path: str, do_lower_case: bool | None, model: ModelConfig) -> dict[str, bytes]:
    """Return the files of BERT's tokenizer with a vocabulary: their contents by name.

    Raises:
      UnusableInputError: the vocabulary cannot be used, or it is larger than the model's.
    """
    with storage.local_copy(path) as copy:
        lines = vocabulary_lines(path, files.read_bytes(copy))
        vocabulary = load_vocabulary(copy)
    check_vocabulary_size(path, vocabulary.size, model)
    ids = _ids(vocabulary)
    pieces = [piece for piece, _ in sorted(ids.items(), key=lambda item: item[1])]
    roles = roles_of(ids)
    roles.setdefault("pad_token", pieces[0])  # examples are padded with id 0
    if do_lower_case is None:
        do_lower_case = _said_beside(path, ids)
    if do_lower_case is None:
        do_lower_case = not any(piece != piece.lower() for piece in pieces if piece not in roles.values())
    special = sorted(set(roles.values()), key=ids.__getitem__)
    tokenizer = tokenizer_json.wordpiece(ids, special, roles, do_lower_case=do_lower_case)
    described = tokenizer_json.directory_files(tokenizer, roles, positions=model.max_position_embeddings)
    made = {name: tokenizer_json.to_bytes(content) for name, content in ({TOKENIZER: tokenizer} | described).items()}
    return made | {VOCABULARY: "".join(f"{line}\n" for line in lines).encode()}


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    return dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))


def _said_beside(path: str, ids: Mapping[str, int]) -> bool | None:
    """Return whether the tokenizer.json beside a vocabulary lower-cases text; None if there is no matching one."""
    beside = files.join(files.parent(path), TOKENIZER)
    return tokenizer_json.lower_cases(files.read_bytes(beside), ids) if files.exists(beside) else None


def special_ids(tokenizer: Mapping[str, bytes]) -> dict[str, int]:
    """Return the id of each role's token, as far as the tokenizer's files say (special_tokens.py)."""
    if TOKENIZER not in tokenizer:
        return {}
    ids = tokenizer_json.token_ids(json.loads(tokenizer[TOKENIZER]))
    return {role: ids[token] for role, token in _roles(tokenizer, ids).items() if token in ids}


def keep_vocabulary(path: str, directory: str, duplicates: str = "last") -> None:
    """Copy a run's vocabulary to its directory, so that its checkpoints can be exported with a tokenizer.

    A tokenizer.json for this vocabulary beside it is copied, too: it says whether text is lower-cased. If the ids of
    the examples are MLPerf's (`duplicates` is "first"), repeated lines are dropped, so that all programs give the same
    ids.

    Raises:
      UnusableInputError: the run was begun with another vocabulary.
      RunFailedError: it cannot be written.
    """
    with storage.local_copy(path) as copy:
        content = files.read_bytes(copy)
    ids = _ids(parse_vocabulary(path, content))
    if duplicates == "first" and ids != (of_mlperf := _ids(parse_vocabulary(path, content, "first"))):
        ids, content = of_mlperf, "".join(f"{piece}\n" for piece in of_mlperf).encode()
    _keep(path, content, files.join(directory, VOCABULARY))
    if _said_beside(path, ids) is not None:
        _copy(files.join(files.parent(path), TOKENIZER), files.join(directory, TOKENIZER))


def keep_tokenizer(path: str, directory: str) -> None:
    """Copy a run's tokenizer.json to its directory, with the file that names its special tokens.

    Raises:
      UnusableInputError: the run was begun with another tokenizer.
      RunFailedError: it cannot be written.
    """
    _copy(path, files.join(directory, TOKENIZER))
    for name in (CONFIG, SPECIAL_TOKENS):
        beside = files.join(files.parent(path), name)
        if files.exists(beside):
            _copy(beside, files.join(directory, name))


def _copy(path: str, kept: str) -> None:
    _keep(path, files.read_bytes(path), kept)


def _keep(path: str, content: bytes, kept: str) -> None:
    if not files.exists(kept):
        files.write_bytes(kept, content)
    elif files.read_bytes(kept) != content:
        raise UnusableInputError(
            f"{files.parent(kept)}: this run was begun with another vocabulary ({kept}) than {path}; give that, or "
            "another --output_dir."
        )


def _found(directory: str) -> dict[str, bytes]:
    """Return the files of a tokenizer that are in a directory: their contents by name."""
    paths = {name: files.join(directory, name) for name in _FILES}
    return {name: files.read_bytes(path) for name, path in paths.items() if files.exists(path)}


def _completed(found: Mapping[str, bytes], path: str, model: ModelConfig) -> dict[str, bytes]:
    """Return the files of a tokenizer with those that transformers needs besides its tokenizer.json, read at `path`."""
    try:
        tokenizer = json.loads(found[TOKENIZER])
        ids = tokenizer_json.token_ids(tokenizer)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnusableInputError(f"{path}: this is no tokenizer.json of Hugging Face's; name one.") from None
    check_vocabulary_size(path, max(ids.values(), default=0) + 1, model)
    if CONFIG in found:
        return dict(found)
    roles = {role: token for role, token in _roles(found, ids).items() if token in ids}
    made = tokenizer_json.directory_files(tokenizer, roles, positions=model.max_position_embeddings)
    return {name: tokenizer_json.to_bytes(content) for name, content in made.items()} | dict(found)


def _roles(tokenizer: Mapping[str, bytes], ids: Mapping[str, int]) -> dict[str, str]:
    """Return the token of each role: as named in the files of a tokenizer, else by its usual name."""
    roles = roles_of(ids)
    for name in (SPECIAL_TOKENS, CONFIG):
        roles |= named_roles(json.loads(tokenizer.get(name, b"{}")))
    return roles
