"""How rows are written: in which format, under which names, with which columns beside what the objective gives."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.options import option
from maskmill.records import shard_formats

# google: of create_pretraining_data.py; v2: of TensorFlow Models (official/nlp/data/create_pretraining_data.py,
# --use_v2_feature_names).
FeatureNames = Literal["google", "v2"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """What decides the files that rows become.

    Raises:
      UnusableInputError: a value that cannot be meant.
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
