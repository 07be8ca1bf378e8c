"""The options of files of examples: their format, the names of features, and additional columns."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.options import option
from maskmill.records import shard_formats

# google: as create_pretraining_data.py; v2: as TensorFlow Models (official/nlp/data/create_pretraining_data.py,
# --use_v2_feature_names).
FeatureNames = Literal["google", "v2"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The options of the files that rows are written to.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    format: str = option(
        "tfrecord",
        choices=shard_formats.NAMES,
        help="tfrecord: TensorFlow's records; parquet: list columns; mds: the shards of MosaicML's streaming; spans: "
        "no rows, but where their text is, which readers tokenize",
    )
    feature_names: FeatureNames = option(
        "google", help="google: input_ids, segment_ids; v2: input_word_ids, input_type_ids, as in TensorFlow Models"
    )
    special_tokens_mask: bool = option(
        False, help="a column that is 1 at [CLS], [SEP] and padding, by what stood there before masking"
    )

    GROUPS: ClassVar[Mapping[str, str]] = {"format": "which files the examples become"}

    def __post_init__(self) -> None:
        check_fields(self)
