"""Options of objectives, masks, rows and formats that cannot be meant, or that do not go together."""

from mistakes.table import Mistake

EXAMPLES = "examples --input=part-00000-of-00001 --output=out --vocab_file=vocab.txt"


def row(name: str, flags: str, says: str) -> Mistake:
    return Mistake(f"objective-{name}", f"{EXAMPLES} {flags}", says)


REFERENCE = r"does not go with --compat {}, which reproduces the reference's records; leave one of them out\."


def against_reference(flags: str, named: str, compat: str = "mlperf") -> Mistake:
    name = named.replace(" ", "-").replace("--", "")
    return row(f"{name}-with-{compat}", f"{flags} --compat={compat}", f"{named} {REFERENCE.format(compat)}")


MISTAKES = [
    against_reference("--pack", "--pack"),
    against_reference("--pack --objective=nsp", "--pack", "google"),
    against_reference("--objective=mlm", "--objective mlm"),
    against_reference("--objective=sop", "--objective sop", "google"),
    against_reference("--mask_unit=span", "--mask_unit span"),
    against_reference("--strict_labels", "--strict_labels"),
    against_reference("--dynamic_masking", "--dynamic_masking"),
    against_reference("--bins=2", "--bins"),
    against_reference("--format=spans", "--format spans"),
    against_reference("--mask_share=0.9 --keep_share=0", "--mask_share"),
    against_reference("--special_tokens_mask", "--special_tokens_mask"),
    row("unknown", "--objective=nps", r"--objective must be one of nsp, mlm, blocks, sop, not 'nps'"),
    row("unknown-unit", "--mask_unit=words", r"--mask_unit must be one of piece, whole_word, word, ngram, span"),
    row("unknown-format", "--format=arrow", r"--format must be one of tfrecord, parquet, mds, spans"),
    row("spans-with-masks", "--format=spans --nodynamic_masking", r"--format spans stores no masks, so it does not go"),
    row("spans-of-dupes", "--format=spans --dupe_factor=3", r"--dynamic_masking stores no masks, so --dupe_factor 3"),
    row("packed-spans", "--format=spans --packed", r"--packed gzips TFRecords, and --format spans"),
    row("unknown-names", "--feature_names=v3", r"--feature_names must be one of google, v2"),
    row("preset-misspelt", "--preset=robertta", r"preset 'robertta': there is no such preset; did you mean roberta\?$"),
    row("preset-unknown", "--preset=x", r"preset 'x': there is no such preset; there are bert-phase1, .*group-texts\."),
    row("preset-in-the-way", "--preset=modernbert --objective=nsp", r"--cross_documents belongs to --objective mlm"),
    row("span-too-long", "--mask_unit=span --max_span=127", r"--max_span 127 is longer than a sequence, which has 126"),
    row("span-of-nothing", "--mask_unit=span --max_span=0", r"max_span 0: this must be 1 or more"),
    row("span-probability", "--mask_unit=span --span_probability=1", r"span_probability 1\.0: this must be above 0"),
    row("span-without-spans", "--max_span=5", r"--max_span belongs to --mask_unit span; leave it out, or give that"),
    row("ngram-without-ngrams", "--max_ngram=5", r"--max_ngram belongs to --mask_unit ngram"),
    row(
        "two-units", "--do_whole_word_mask --mask_unit=span", r"--do_whole_word_mask does not go with --mask_unit span"
    ),
    row("shares-below-one", "--mask_share=0.5", r"mask_share 0\.5, random_share 0\.1 and keep_share 0\.1: .* make 1"),
    row("shares-of-nothing", "--mask_share=0 --random_share=0 --keep_share=0", r"together they must make 1"),
    row("share-negative", "--mask_share=1.1 --random_share=-0.1 --keep_share=0", r"none may be below 0"),
    row("blocks-of-mlm", "--objective=mlm --block_remainder=drop", r"--block_remainder belongs to --objective blocks"),
    row("batch-of-nothing", "--objective=blocks --block_batch=0", r"block_batch 0: this must be 1 or more"),
    row("strict-sop", "--objective=sop --strict_labels", r"--strict_labels belongs to --objective nsp"),
    row(
        "short-blocks", "--objective=blocks --short_seq_prob=0.1", r"--short_seq_prob 0\.1 does not go with --objective"
    ),
    row("packed-bins", "--pack --bins=4", r"--pack fills rows, so --bins has no lengths to sort by"),
    row("packed-blocks", "--objective=blocks --pack", r"--pack does not go with --objective blocks"),
    row("no-bins", "--bins=0", r"bins 0: there must be one or more"),
    row("many-bins", "--bins=129", r"--bins 129: there are only 128 lengths"),
    row("gzipped-parquet", "--format=parquet --packed", r"--packed gzips TFRecords"),
]
