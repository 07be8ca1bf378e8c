"""examples: text shards → shards of training examples, and manifest.json."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from maskmill.characters.utf8 import is_utf8
from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import decided_mask_unit
from maskmill.storage import files
from pipelines.settings.stage_options import Compat, ExamplesOptions, decided_masking
from pipelines.stages.stage import Build, GraphStage
from pipelines.stages.vocabulary_stage import VocabularyStage
from pipelines.terminal import data_warnings

if TYPE_CHECKING:
    import apache_beam as beam

    from maskmill.example_shards.example_shards import ExamplesSetup
    from maskmill.records.plan import ExamplesPlan

# Of examples, whatever their options are.
KERNELS = ("kernels", "tokenization.kernels", "masking.kernels", "records.kernels")
# The beginnings of texts that are looked at for lines that are cut at a width.
_MOST_LOOKED_AT, _HEAD_BYTES, _FEWEST_LINES = 20, 64 << 10, 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesStage(GraphStage[ExamplesOptions]):
    """Input: TextShard. Output: ExampleShard.

    tokenizer_kernels: the compiled code that the tokenizer needs, see LoadedTokenizer.
    """

    name = "examples"
    options_class = ExamplesOptions
    after = VocabularyStage
    decides = ("input", "output", "compat", "preset")
    work = 10  # a shard grows about 18-fold at dupe 10

    tokenizer_kernels: tuple[str, ...] = ()

    @classmethod
    def decisions(cls, build: Build) -> dict[str, Any]:
        """With the vocabulary, if the build makes it."""
        decided, made = super().decisions(build), build.get(VocabularyStage)
        if made is None:
            return decided
        name, path = made.tokenizer
        decided |= {"vocab_file": None, "tokenizer_file": None, name: path}
        if name == "vocab_file":
            decided["do_lower_case"] = made.vocabulary.decided.do_lower_case
        return decided

    @classmethod
    def check(cls, options: ExamplesOptions, *, is_first: bool) -> Self:
        """Check the vocabulary, and the text shards if they are there already; raise as Stage.check."""
        from maskmill.text.text_files import beside_texts, check_texts, find_texts, refuse_equal_names

        texts = find_texts(options.input) if is_first else []
        refuse_equal_names(texts)
        name, path = options.tokenizer
        if files.is_local(path):
            files.read_bytes(path)  # a mistyped path is refused before kernels are imported
        from maskmill.records.tokenizing import load_tokenization

        check_texts(texts, options.input)
        skipped = beside_texts(options.input) if is_first else []
        masking = decided_masking(options.masking, options.compat)
        loaded = load_tokenization(path, masking, is_tokenizer=name == "tokenizer_file")
        vocabulary = loaded.vocabulary
        contents = {f"{name}_sha256": vocabulary.sha256}
        cls.check_output(options, contents)
        data_warnings.warn(
            "examples", data_warnings.warnings_of_vocabulary(vocabulary, do_lower_case=masking.do_lower_case)
        )
        data_warnings.warn("examples", _cut_texts(texts))
        if skipped:
            data_warnings.warn("examples", [f"{', '.join(skipped)}: skipped, because they are not text shards."])
        return cls(
            options=options,
            read_files=texts,
            pieces=len(texts) if is_first else None,
            paths=(*(options.input if is_first else ()), path),
            contents=contents,
            tokenizer_kernels=loaded.kernels,
        )

    @classmethod
    def check_ahead(cls, options: ExamplesOptions) -> None:
        """Check the output; the vocabulary is not there yet."""
        cls.check_output(options)

    @classmethod
    def made(cls, options: ExamplesOptions) -> Self:
        """Return the examples that a build has made, of which it now picks eval examples.

        Raises:
          UnusableInputError: their vocabulary cannot be used.
        """
        name, path = options.tokenizer
        digest = hashlib.sha256(files.read_bytes(path)).hexdigest()
        return cls(options=options, contents={f"{name}_sha256": digest})

    @classmethod
    def expected_kernels(cls, options: ExamplesOptions) -> Sequence[str]:
        """Return those of the options, and of any tokenizer."""
        from maskmill.records.examples import kernels_of

        plan = plan_of(options)
        return kernels_of(plan, ("tokenization.kernels",)) if options.tokenizer_file else kernels_of(plan)

    @classmethod
    def folders_of(cls, options: ExamplesOptions) -> Sequence[str]:
        """Return those of MDS."""
        return plan_of(options).folders

    @property
    def setup(self) -> "ExamplesSetup":
        """Return the options that decide a shard's examples, the vocabulary's checksum included."""
        from maskmill.example_shards.example_shards import ExamplesSetup

        name, path = self.options.tokenizer
        return ExamplesSetup(
            vocab_file=path,
            vocab_sha256=self.contents[f"{name}_sha256"],
            is_tokenizer=name == "tokenizer_file",
            masking=decided_masking(self.options.masking, self.options.compat),
            objective=self.options.objective,
            format=self.options.format,
            one_seed=self.options.compat != "none",
            packed=self.options.packed,
        )

    @property
    def kernels(self) -> Sequence[str]:
        """Those of the steps from sentences to records."""
        from maskmill.records.examples import kernels_of

        return kernels_of(self.setup.plan, self.tokenizer_kernels)

    @property
    def decided(self) -> dict[str, Any]:
        """Return what --compat decides, and what is masked together."""
        masking = self.setup.masking
        return {
            "mask_unit": decided_mask_unit(masking, self.options.objective),
            "unicode": masking.unicode,
            "duplicate_pieces": masking.duplicate_pieces,
            "one_seed": self.setup.one_seed,
        }

    def source(self, pipeline: "beam.Pipeline") -> "beam.PCollection":
        """Return the text shards that `input` names."""
        from pipelines.stages.text_steps import DescribeTexts

        return pipeline | DescribeTexts(self.read_files, self.options.input)

    def expand(self, elements: "beam.PCollection") -> "tuple[beam.PCollection, Sequence[beam.PCollection]]":
        """Add the masking step."""
        from maskmill.example_shards import example_shards
        from pipelines.stages.text_steps import AnnounceTexts
        from transforms.examples import MaskShards

        elements | AnnounceTexts(self.output, example_shards.KIND)
        shards = elements | MaskShards(self.setup, self.output)
        return shards, [shards]

    def close(self, elements: Sequence[Any]) -> None:
        """Write the manifest, and sweep."""
        from maskmill.example_shards import close_examples

        close_examples.close_examples(
            elements, self.setup, parameters=self.parameters, decided=self.decided, output=self.output
        )

    def progress(self) -> Mapping[str, str]:
        """Return the kind of example shards."""
        from maskmill.example_shards import example_shards

        return {"examples": example_shards.KIND}


def _cut_texts(texts: "Sequence[files.FileInfo]") -> list[str]:
    """Return the warning about the first text on this machine that begins with lines cut at a width, as in a book's
    file.

    What is not UTF-8 is refused where it is read.
    """
    from maskmill.text_shards.text_profile import TextProfile, add_up, is_cut

    for text in texts[:_MOST_LOOKED_AT]:
        head = files.read_range(text.path, 0, _HEAD_BYTES) if files.is_local(text.path) else b""
        head = head[: head.rfind(b"\n") + 1]
        profile = TextProfile()
        profile.add(head if is_utf8(head) else b"")
        lines, _ = add_up([profile.record])
        if is_cut(lines) and lines["lines"] >= _FEWEST_LINES:
            return [f"{text.path}: {data_warnings.cut_lines(lines)}"]
    return []


def plan_of(options: ExamplesOptions) -> "ExamplesPlan":
    """Return what decides the examples, the vocabulary aside."""
    from maskmill.records.plan import ExamplesPlan

    masking = decided_masking(options.masking, options.compat)
    return ExamplesPlan(masking=masking, objective=options.objective, format=options.format)


def check_given_texts(patterns: Sequence[str], compat: Compat) -> None:
    """Check that a build can make examples of text shards that exist, before it makes a vocabulary of them.

    Raises:
      UnusableInputError: two have the same name, or manifests tell that they were made for other data.
    """
    from maskmill.storage import manifest
    from maskmill.text.text_files import find_texts, refuse_equal_names

    refuse_equal_names(find_texts(patterns))
    for pattern in patterns:
        made = None if files.is_glob(pattern) else manifest.find_manifest(pattern)
        if made is None or made["stage"] != "extract" or compat == "none":
            continue
        of_texts = made["parameters"].get("compat", "none")
        if of_texts != compat:
            raise UnusableInputError(
                f"{pattern}: this text was extracted with compat {of_texts}, and the build has compat {compat}; "
                f"extract it with compat {compat}, or leave compat out."
            )
