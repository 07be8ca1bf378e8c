"""Text to ids as a SavedModel, in the folders that TensorFlow Transform's TFTransformOutput reads."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import metadata_io

from maskmill.tokenization.byte_level import byte_characters
from maskmill.vocabularies.counting import UNICODE
from maskmill.vocabularies.learning import LearnedVocabulary
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.transform_fn.byte_level import ByteLevel
from maskmill.vocabularies.transform_fn.wordpiece import WordPiece

_TEXT, _IDS, _ROW_SPLITS = "text", "ids", "row_splits"
# TensorFlow writes this file with a random number; nothing reads it.
_FINGERPRINT = "fingerprint.pb"


def splitter(learned: LearnedVocabulary, options: VocabularyOptions) -> Callable[[Any], Any]:
    """Return a function from texts to ids: string[texts] to a RaggedTensor int64 [texts, ids]."""
    if learned.kind == "wordpiece":
        return WordPiece(learned.pieces, do_lower_case=bool(options.decided.do_lower_case), unicode=UNICODE)
    # A special token is never a byte or a merge, though it may look like one.
    ids = {piece: number for number, piece in enumerate(learned.pieces) if number >= learned.special}
    merged = [ids[learned.pieces[left] + learned.pieces[right]] for left, right in learned.merges.tolist()]
    return ByteLevel(
        np.array([ids[character] for character in byte_characters()], np.int32),
        learned.merges,
        merged,
        add_prefix_space=options.add_prefix_space,
    )


def save_transform_fn(learned: LearnedVocabulary, options: VocabularyOptions, vocabulary: str, folder: str) -> None:
    """Write the SavedModel and the description of its output.

    `tft.TFTransformOutput(folder)` gives a layer that maps {"text": string[texts]} to {"ids": RaggedTensor int64
    [texts, ids]}. `tf.saved_model.load(folder + "/transform_fn")` has the same as its attribute `transform_fn`, and a
    signature `serving_default` with `ids` int64[all ids] and `row_splits` int64[texts + 1].

    vocabulary: the name of the pieces in TFTransformOutput. folder: an existing folder.
    """
    split = splitter(learned, options)

    texts = tf.TensorSpec([None], tf.string, name=_TEXT)
    transform_fn = tf.function(lambda features: {_IDS: split(features[_TEXT])}, input_signature=[{_TEXT: texts}])

    def serving(text: Any) -> dict[str, Any]:
        ids = transform_fn({_TEXT: text})[_IDS]
        return {_IDS: ids.values, _ROW_SPLITS: ids.row_splits}

    pieces = os.path.join(folder, vocabulary)
    with open(pieces, "w", encoding="utf-8") as file:
        file.writelines(f"{piece}\n" for piece in learned.pieces)
    module = tf.Module()
    module.transform_fn = transform_fn
    module.vocabulary = tf.saved_model.Asset(pieces)
    saved = os.path.join(folder, tft.TFTransformOutput.TRANSFORM_FN_DIR)
    tf.saved_model.save(module, saved, signatures=tf.function(serving, input_signature=[texts]))
    os.remove(os.path.join(saved, _FINGERPRINT))
    os.remove(pieces)
    metadata = tft.DatasetMetadata.from_feature_spec(
        {_IDS: tf.io.RaggedFeature(tf.int64)},
        {_IDS: schema_pb2.IntDomain(min=0, max=len(learned.pieces) - 1, is_categorical=True)},
    )
    metadata_io.write_metadata(metadata, os.path.join(folder, tft.TFTransformOutput.TRANSFORMED_METADATA_DIR))
