"""vocabulary: text shards → a vocabulary for them, the report on it, and manifest.json."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.vocabularies.options import VocabularyOptions
from pipelines.settings.options import parameters
from pipelines.settings.stage_options import VocabularyStageOptions
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.stage import Build, GraphStage, check_extra
from pipelines.terminal import data_warnings

if TYPE_CHECKING:
    import apache_beam as beam

    from maskmill.text.shards import TextShard
    from maskmill.vocabularies.making import VocabularySetup

KERNELS = ("vocabularies.kernels", "tokenization.kernels")

# Matrix units take multiples of this at full speed.
_SIZE_MULTIPLE = 64


def training_text(shard: "TextShard") -> Iterator["TextShard"]:
    """Yield the shard, if its words are counted: held-out text is what the vocabulary is measured on."""
    if shard.kind == "train":
        yield shard


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyStage(GraphStage[VocabularyStageOptions]):
    """Input: TextShard. Output: MadeVocabulary."""

    name = "vocabulary"
    options_class = VocabularyStageOptions
    after = ExtractStage
    decides = ("input", "output")
    is_optional = True
    ends_graph = True
    purpose = "With this section the build makes its vocabulary from its text, and examples names none."
    places = ("output", "model_dir")
    # Counting words is so quick, 110 MB a second, that it takes much text to make up for the start of a second process.
    work = 1 / 16

    @classmethod
    def clash(cls, build: Build) -> str | None:
        """Return why data that are reproduced take no new vocabulary."""
        if build.compat != "none":
            return f"compat {build.compat} reproduces data of a vocabulary that exists; leave this section out"
        return None

    @classmethod
    def check(cls, options: VocabularyStageOptions, *, is_first: bool) -> Self:
        """Check the text shards if they are there already, and what is wanted beside it; raise as Stage.check."""
        from maskmill.text.text_files import beside_texts, check_texts, find_texts, kind_of_text

        texts = find_texts(options.input) if is_first else []
        check_texts(texts, options.input)
        if is_first and not any(text.size for text in texts if kind_of_text(text.path) == "train"):
            raise UnusableInputError(
                f"{options.input[0]}: there is no text to learn a vocabulary from; name text shards that are neither "
                "empty nor held out (eval.txt)."
            )
        for path in options.compare:
            _check_compared(path)
        _check_model_directory(options)
        if options.transform_fn:
            check_extra("tensorflow", "--transform_fn", "tensorflow", "tensorflow_transform")
        cls.check_output(options, unclaimed=options.ADDITIONS)
        _note_size(options.vocabulary)
        skipped = beside_texts(options.input) if is_first else []
        if skipped:
            data_warnings.warn("vocabulary", [f"{', '.join(skipped)}: skipped, because they are not text shards."])
        model_dir = () if options.model_dir is None else (options.model_dir,)
        read = options.input if is_first else ()
        return cls(
            options=options,
            read_files=texts,
            pieces=len(texts) if is_first else None,
            paths=(*read, *options.compare, *model_dir),
            unclaimed=options.ADDITIONS,
        )

    @classmethod
    def expected_kernels(cls, options: VocabularyStageOptions) -> Sequence[str]:
        """Return the kernels that count, learn and tokenize."""
        return KERNELS

    @property
    def setup(self) -> "VocabularySetup":
        """Return the options that decide the vocabulary."""
        from maskmill.vocabularies.making import VocabularySetup

        return VocabularySetup(options=self.options.vocabulary.decided, transform_fn=self.options.transform_fn)

    @property
    def kernels(self) -> Sequence[str]:
        """Those that count and learn, and the tokenizer's, which the report runs."""
        from maskmill.vocabularies import counting, learning, making

        options = self.setup.options
        return (*counting.KERNELS, *learning.KERNELS, *making.kernels_of(options, self.options.compare))

    @property
    def decided(self) -> dict[str, Any]:
        """The size, the special tokens and the case if they were left open."""
        given = self.parameters
        return {name: value for name, value in parameters(self.setup.options).items() if value != given[name]}

    def source(self, pipeline: "beam.Pipeline") -> "beam.PCollection":
        """Return the text shards that `input` names."""
        from pipelines.stages.text_steps import DescribeTexts

        return pipeline | DescribeTexts(self.read_files, self.options.input)

    def expand(self, elements: "beam.PCollection") -> "tuple[beam.PCollection, Sequence[beam.PCollection]]":
        """Add the steps from text to the report."""
        import apache_beam as beam

        from maskmill.vocabularies import counting
        from pipelines.stages.text_steps import AnnounceTexts
        from transforms.vocabularies import CountWords, MakeVocabulary, MergeCounts, ReportVocabulary

        setup, output = self.setup, self.output
        training = elements | "Training" >> beam.FlatMap(training_text)
        training | AnnounceTexts(output, counting.KIND)
        counted = training | CountWords(setup.options, output)
        merged = counted | MergeCounts(output)
        made = merged | MakeVocabulary(setup, self.options.input or (output,), output)
        measured = (made, elements) | "WithTexts" >> beam.Flatten().with_output_types(Any)
        report = measured | ReportVocabulary(setup, self.options.compare, output)
        return made, [counted, merged, made, report]

    def close(self, elements: Sequence[Any]) -> None:
        """Write the model's directory and the manifest, and sweep."""
        from maskmill.vocabularies import making

        making.close_vocabulary(
            elements,
            parameters=self.parameters,
            decided=self.decided,
            setup=self.setup,
            model_dir=self.options.model_dir,
            output=self.output,
        )

    def progress(self) -> Mapping[str, str]:
        """Return the steps that take long."""
        from maskmill.vocabularies import counting, making, merging

        return {"count words": counting.KIND, "merge counts": merging.KIND, "learn": making.KIND}


def _check_compared(path: str) -> None:
    """Raise UnusableInputError if a file is not a vocabulary that a report can measure."""
    from maskmill.tokenization.tokenizers import load_tokenizer
    from maskmill.tokenization.vocabulary import load_vocabulary

    if path.endswith(".json"):
        load_tokenizer(path, files.read_bytes(path))
    else:
        load_vocabulary(path)


def _check_model_directory(options: VocabularyStageOptions) -> None:
    """Look whether --model_dir is free, or holds what an earlier run into this output has written there.

    Raises:
      UnusableInputError: it holds something else, as the files of a trained model, which would be lost.
    """
    if options.model_dir is None:
        return
    from maskmill.storage import manifest

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
    """Name the nearest multiple of 64 if the size of a vocabulary is not one."""
    size = options.decided_size
    if size % _SIZE_MULTIPLE:
        nearest = _SIZE_MULTIPLE * max(1, round(size / _SIZE_MULTIPLE))
        note = f"--size {size:,} is not a multiple of {_SIZE_MULTIPLE}, and models train faster with one: {nearest:,}."
        data_warnings.warn("vocabulary", [note])
