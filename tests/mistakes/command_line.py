"""Mistakes in a command line: its flags, their values, and what is done with what it prints."""

from mistakes.table import Mistake
from transforms.sentences.training import PARAMETER_FILES

EXTRACT = "extract --input dump.xml --output out"
EXAMPLES = "examples --input part-00000-of-00001 --output out --vocab_file vocab.txt"
CREATE = "create-pretraining-data --input_file part-00000-of-00001 --output_file out.tfrecord --vocab_file vocab.txt"
PICK = "pick-eval --input_tfrecord examples.tfrecord --output_tfrecord out.tfrecord"


def row(name: str, command: str, says: str, **more: object) -> Mistake:
    return Mistake(name=f"line-{name}", command=command, says=says, **more)  # type: ignore[arg-type]


COMMANDS = [
    row("misspelt-command", "extrakt --input dump.xml --output out", "no such command; did you mean extract"),
    row("no-such-command", "frobnicate", r"no such command; see maskmill --help"),
    row("flag-without-command", "--input dump.xml", r"--?input|dump\.xml: "),
    row("only-quiet", "--quiet", "--quiet: a command is missing"),
    row("only-log-format", "--log_format text", "--log_format: a command is missing"),
    row("only-log-level", "--log_level DEBUG", "--log_level: a command is missing"),
    row("train-misspelt", "trian --output_dir out", r"did you mean train\?$"),
    row("command-with-underscores", "create_pretraining_data", r"--input_file .* are missing|and --vocab_file"),
    row("command-as-the-reference-s-program", "pick_eval.py", r"--input_tfrecord \(.*\) and --output_tfrecord"),
]

MISSING = [
    row("extract-nothing", "extract", r"--input \(.*\) and --output \(.*\) are missing"),
    row("extract-no-output", "extract --input dump.xml", r"--output is missing: directory of the text shards"),
    row("extract-no-input", "extract --output out", r"--input is missing"),
    row("examples-nothing", "examples", r"--input \(.*\) and --output \(.*\) are missing"),
    row("examples-no-vocabulary", "examples --input part-00000-of-00001 --output out", "--vocab_file is missing"),
    row("create-nothing", "create-pretraining-data", r"--input_file .*, --output_file .* and --vocab_file .* missing"),
    row("pick-nothing", "pick-eval", r"--input_tfrecord \(.*\) and --output_tfrecord \(.*\) are missing"),
    row("index-nothing", "index", "FILE is missing"),
    row("train-nothing", "train", "--output_dir is missing"),
    row("convert-nothing", "convert-checkpoint", r"--input \(.*\), --output \(.*\) and --format \(.*\) are missing"),
    row("value-missing-at-the-end", "extract --input dump.xml --output", "--output: its value is missing"),
    row("value-missing-before-a-flag", "extract --input --output out", "--input: its value is missing"),
    row("number-missing", f"{EXTRACT} --shard_size_mb", "--shard_size_mb: its value is missing; give a number"),
    row("choice-missing", f"{EXTRACT} --headings", "--headings: its value is missing; give one of drop, keep"),
    row("beam-value-missing", f"{EXTRACT} --runner", "--runner: its value is missing; give one of"),
    row("workers-missing", f"{EXTRACT} --workers --quiet", "--workers: its value is missing; give a whole number"),
    row("empty-output", "extract --input dump.xml --output ''", "--output is empty"),
    row("empty-output-equals", "extract --input dump.xml --output=", "--output is empty"),
    row("blank-output", "extract --input dump.xml --output ' '", "--output is empty"),
    row("empty-input", "extract --input '' --output out", "--input is empty"),
    row(
        "empty-vocabulary-name", "examples --input part-00000-of-00001 --output out --vocab_file=", "--vocab_file is e"
    ),
    row("empty-number", f"{EXTRACT} --shard_size_mb=", "--shard_size_mb is empty"),
    row("empty-switch", f"{EXTRACT} --keep_titles=", "--keep_titles is empty"),
    row(
        "empty-output-dir", "train --input_file examples.tfrecord --output_dir= --preset tiny", "--output_dir is empty"
    ),
    row("only-commas", "extract --input , --output out", "No input was named|--input is empty"),
]

UNKNOWN = [
    row(
        "misspelt-flag", f"{EXTRACT} --keep_titels", r"--keep_titels: there is no such flag; did you mean --keep_titles"
    ),
    row("misspelt-runner", f"{EXTRACT} --runner DataflowRuner", r"not 'DataflowRuner'; did you mean DataflowRunner\?$"),
    row("misspelt-choice", f"{EXAMPLES} --compat mlperff", r"not 'mlperff'; did you mean mlperf\?$"),
    row("flag-of-absl", f"{CREATE} --alsologtostderr", r"this flag of absl's has no meaning here; leave it out"),
    row("flag-of-absl-with-a-value", f"{CREATE} --verbosity=1", r"this flag of absl's has no meaning here; leave it"),
    row("misspelt-beam-flag", f"{EXTRACT} --runer FlinkRunner", "did you mean --runner"),
    row("unheard-of-flag", f"{EXTRACT} --zzzzqqqq 3", "--zzzzqqqq: there is no such flag; see --help"),
    row("abbreviated-flag", f"{EXTRACT} --shard_size 3", "--shard_size: there is no such flag; did you mean --shard_s"),
    row("dashes-for-underscores", f"{EXTRACT} --shard-size-mb 3", "did you mean --shard_size_mb"),
    row("flag-of-examples-for-extract", f"{EXTRACT} --vocab_file vocab.txt", "--vocab_file: there is no such flag"),
    row("flag-of-extract-for-examples", f"{EXAMPLES} --namespaces 0", "--namespaces: there is no such flag"),
    row("beam-flag-where-no-beam-is", f"{CREATE} --runner DirectRunner", "--runner: there is no such flag"),
    row("workers-where-no-beam-is", f"{CREATE} --workers 2", "--workers: there is no such flag"),
    row("unknown-flag-of-pick", f"{PICK} --seed 3", "--seed: there is no such flag"),
    row("unknown-flag-of-index", "index examples.tfrecord --outputs x", "did you mean --output"),
    row("unknown-flag-of-train", "train --output_dir out --lr 3", "--lr: there is no such flag"),
    row("negated-flag-with-a-value", f"{EXTRACT} --nokeep_titles=True", "--nokeep_titles takes no value"),
    row("no-in-front-of-a-number", f"{EXTRACT} --noshard_size_mb", "--noshard_size_mb: there is no such flag"),
    row("help-misspelt", "extract --hlep", "--hlep: there is no such flag"),
    row("value-for-a-switch-of-beam", f"{EXTRACT} --streaming=yes", "--streaming takes no value"),
]

STRAY = [
    row("stray-argument", f"{EXTRACT} stray", "stray: this argument belongs to no flag"),
    row("unquoted-pattern", "extract --input dump.xml dump.xml.bz2 --output out", "quote a pattern, and separate"),
    row("input-without-flag", "extract dump.xml --output out", r"dump\.xml: this argument belongs to no flag"),
    row("single-equals-with-spaces", "extract --input = dump.xml --output out", r"quote a pattern|takes one value"),
    row("stray-behind-dashes", f"{EXTRACT} -- stray", "stray: this argument belongs to no flag"),
    row("stray-number", f"{EXAMPLES} 3", "3: this argument belongs to no flag"),
    row("input-given-twice", "extract --input dump.xml --input dump.xml.bz2 --output out", "--input is given twice"),
    row("output-given-twice", f"{EXTRACT} --output other", r"--output is given twice \('out', then 'other'\)"),
    row("vocabulary-given-twice", f"{CREATE} --vocab_file=book.txt", "--vocab_file is given twice"),
    row("home-of-nobody", "extract --input dump.xml --output=~nobody2/x", r"no user nobody2; write \./~nobody2/x"),
    row("input-in-the-home-of-nobody", "extract --input=~nobody2/x --output=out", "there is no user nobody2"),
    row("name-that-steers-the-terminal", "extract --input 'no\x1b[31m\r.xml' --output o", r"no\\x1b\[31m\\r\.xml"),
    row("index-without-a-comma", "index examples.tfrecord --output a b", r"2 files|does not exist|^"),
    row("switch-with-a-misspelt-value", f"{EXAMPLES} --do_lower_case Flase", "--do_lower_case must be true or false"),
]

VALUES = [
    row("text-for-a-number", f"{EXTRACT} --shard_size_mb abc", "--shard_size_mb must be a number, not 'abc'"),
    row("number-with-a-unit", f"{EXTRACT} --shard_size_mb 27MB", "--shard_size_mb must be a number, not '27MB'"),
    row("comma-for-a-point", f"{EXTRACT} --eval_fraction 0,005", "--eval_fraction must be a number"),
    row("fraction-for-a-whole-number", f"{EXTRACT} --max_documents 1.5", "--max_documents must be a whole number"),
    row("power-for-a-whole-number", f"{EXTRACT} --max_documents 1e6", "--max_documents must be a whole number"),
    row("percent", f"{EXTRACT} --eval_fraction 5%", "--eval_fraction must be a number"),
    row("shard-size-nan", f"{EXTRACT} --shard_size_mb nan", "--shard_size_mb must be a finite number"),
    row("shard-size-infinite", f"{EXTRACT} --shard_size_mb inf", "--shard_size_mb must be a finite number"),
    row("shard-size-overflows", f"{EXTRACT} --shard_size_mb 1e999", "--shard_size_mb must be a finite number"),
    row("shard-size-negative", f"{EXTRACT} --shard_size_mb -1", "--shard_size_mb must be"),
    row("shard-size-zero", f"{EXTRACT} --shard_size_mb 0", "--shard_size_mb must be"),
    row("masked-share-nan", f"{EXAMPLES} --masked_lm_prob nan", "--masked_lm_prob must be a finite number"),
    row("masked-share-above-one", f"{EXAMPLES} --masked_lm_prob 1.5", "masked_lm_prob 1.5"),
    row("masked-share-in-percent", f"{EXAMPLES} --masked_lm_prob 15", "masked_lm_prob 15"),
    row("eval-fraction-one", f"{EXTRACT} --eval_fraction 1", "--eval_fraction must be at least 0 and below 1"),
    row("eval-articles-negative", f"{EXTRACT} --num_eval_articles -5", "--num_eval_articles must be 0 or more"),
    row("documents-zero", f"{EXTRACT} --max_documents 0", "--max_documents must be 1 or more"),
    row("dupe-zero", f"{EXAMPLES} --dupe_factor 0", "dupe_factor 0"),
    row("dupe-of-ten-digits", f"{CREATE} --dupe_factor 1000000000", "dupe_factor 1000000000"),
    row("dupe-negative", f"{CREATE} --dupe_factor=-3", "dupe_factor -3"),
    row("sequence-too-long", f"{EXAMPLES} --max_seq_length 1000000", "max_seq_length 1000000"),
    row("sequence-too-short", f"{CREATE} --max_seq_length 3", "max_seq_length 3"),
    row("shard-size-below-a-byte", f"{EXTRACT} --shard_size_mb 1e-300", "--shard_size_mb must be"),
    row("predictions-beyond-any-sequence", f"{CREATE} --max_predictions_per_seq {2**62}", "max_predictions_per_seq 46"),
    row("no-predictions", f"{EXAMPLES} --max_predictions_per_seq 0", "max_predictions_per_seq 0"),
    row("seed-of-more-than-64-bits", f"{EXAMPLES} --random_seed 99999999999999999999", "at most 64 bits"),
    row("not-a-choice", f"{EXTRACT} --headings dorp", "--headings must be one of drop, keep, not 'dorp'"),
    row("choice-in-another-case", f"{EXTRACT} --compat MLPerf", "--compat must be one of none, mlperf, google"),
    row("compat-of-create", f"{CREATE} --compat none", "--compat must be one of mlperf, google"),
    row("not-a-format", f"{EXTRACT} --input_format json", "--input_format must be one of auto, mediawiki"),
    row("neither-true-nor-false", f"{EXAMPLES} --do_lower_case=maybe", "--do_lower_case must be true or false"),
    row("namespaces-by-name", f"{EXTRACT} --namespaces main", "--namespaces must be whole numbers separated by commas"),
    row("namespaces-with-spaces", f"{EXTRACT} --namespaces '0 14'", "--namespaces must be whole numbers"),
    row("date-in-words", f"{EXTRACT} --dump_date yesterday", "--dump_date is 'yesterday'; it must be a day"),
    row("date-the-other-way-round", f"{EXTRACT} --dump_date 31.01.2020", "--dump_date is '31.01.2020'"),
    row("date-that-is-none", f"{EXTRACT} --dump_date 2021-02-30", "--dump_date is '2021-02-30'"),
    row(
        "no-such-language", f"{EXTRACT} --language klingon", "--language=klingon names no language that maskmill knows"
    ),
    row("language-misspelt", f"{EXTRACT} --language ukranian", r"\(the nearest is ukrainian\); give a code such as uk"),
    row("language-with-a-folder-that-is-not-there", f"{EXTRACT} --language punkt/uk", "collocations.tab is missing"),
    row(
        "language-with-a-folder-of-other-files",
        f"{EXTRACT} --language ./punkt",
        r"\./punkt: its files are not those of Punkt parameters",
        files={f"punkt/{name}": b"one\n" for name in PARAMETER_FILES},
    ),
    row(
        "language-that-mlperf-would-train-for",
        f"{EXTRACT} --compat mlperf --language uk",
        "--compat mlperf splits sentences by Punkt alone, and there are no parameters for --language=uk",
    ),
    row("pick-none", f"{PICK} --num_examples_to_pick 0", "--num_examples_to_pick must be 1 or more"),
    row("pick-a-negative-number", f"{PICK} --num_examples_to_pick -5", "--num_examples_to_pick must be 1 or more"),
    row("pick-of-length-zero", f"{PICK} --max_seq_length 0", "--max_seq_length must be 1 or more"),
    row("log-level-unknown", f"{EXTRACT} --log_level LOUD", "--log_level must be one of DEBUG, INFO"),
    row("log-format-unknown", f"{EXTRACT} --log_format xml", "--log_format must be one of text, json"),
    row("log-format-missing", f"{EXTRACT} --log_format", "--log_format: its value is missing"),
    row("quiet-and-log-level", f"{EXTRACT} --quiet --log_level INFO", "--quiet and --log_level exclude each other"),
    row("eval-number-and-share", f"{EXTRACT} --num_eval_articles 1 --eval_fraction 0.1", "exclude each other"),
]

RUNNING = [
    row("workers-zero", f"{EXTRACT} --workers 0", "--workers must be 1 or more, not 0"),
    row("workers-negative", f"{EXTRACT} --workers -3", "--workers must be 1 or more, not -3"),
    row("workers-too-many", f"{EXTRACT} --workers 1000000", r"--workers 1000000: this machine has \d+ cores"),
    row("direct-workers-too-many", f"{EXTRACT} --direct_num_workers 1000000", r"this machine has \d+ cores"),
    row("workers-auto", f"{EXTRACT} --workers auto", "--workers must be a whole number"),
    row("workers-twice", f"{EXTRACT} --workers 2 --direct_num_workers 2", "--workers and --direct_num_workers both"),
    row(
        "workers-on-flink", f"{EXTRACT} --workers 2 --runner FlinkRunner", "--workers counts the processes of the local"
    ),
    row("direct-workers-negative", f"{EXTRACT} --direct_num_workers -3", "--direct_num_workers must be 1 or more"),
    row("direct-workers-text", f"{EXTRACT} --direct_num_workers two", "--direct_num_workers must be a whole number"),
    row("running-mode-unknown", f"{EXTRACT} --direct_running_mode fast", "--direct_running_mode must be one of"),
    row("runner-unknown", f"{EXTRACT} --runner FlinkRuner", "--runner must be one of .*FlinkRunner"),
    row("flink-version-unknown", f"{EXTRACT} --flink_version 7.7", "Beam refuses a flag: argument --flink_version"),
    row("audit-entries-no-json", f"{EXTRACT} --gcs_custom_audit_entries x", "Beam refuses a flag"),
]

PRINTING = [
    row("config-to-a-full-disk", "maskmill build --print_config >/dev/full", "cannot be written", code=1, shell=True),
    row("help-to-a-full-disk", "maskmill extract --help >/dev/full", "cannot be written", code=1, shell=True),
    row("help-to-head", "set -o pipefail; maskmill --help | head -1", "^", code=0, shell=True),
    row("config-to-head", "set -o pipefail; maskmill build --print_config | head -1", "^", code=0, shell=True),
    row("config-to-nobody", "set -o pipefail; maskmill build --print_config | true", "^", code=0, shell=True),
    row("help-in-ascii", "PYTHONIOENCODING=ascii maskmill --help", r"\\u2192", code=0, shell=True),
    row(
        "config-in-ascii", "PYTHONIOENCODING=ascii maskmill build --print_config", "dupe_factor: 10", code=0, shell=True
    ),
    row("output-closed", "maskmill build --print_config >&-", "^", code=0, shell=True),
    row(
        "sentence-in-ascii",
        r"PYTHONIOENCODING=ascii maskmill extract --input é.xml --output out",
        r"\\xe9\.xml",
        shell=True,
    ),
    row("input-of-bad-bytes", r"maskmill extract --input $'d\xff.xml' --output out", "is not UTF-8", shell=True),
    row("output-of-bad-bytes", r"maskmill extract --input dump.xml --output $'o\xff'", "is not UTF-8", shell=True),
    row(
        "pattern-finds-bad-bytes",
        r"cp dump.xml $'d\xff.xml'; maskmill extract --input 'd?.xml' --output out; "
        r"code=$?; rm $'d\xff.xml'; exit $code",
        "is not UTF-8",
        shell=True,
    ),
    row("index-of-bad-bytes", r"maskmill index $'d\xff.tfrecord'", "is not UTF-8", shell=True),
    row("command-of-bad-bytes", r"maskmill $'extract\xff'", "no such command", shell=True),
    row("flag-of-bad-bytes", r"maskmill extract $'--inp\xffut' x", "no such flag", shell=True),
    row("config-of-bad-bytes", r"maskmill build $'b\xff.yaml'", "is not UTF-8", shell=True),
]

MEMORY = [
    row(
        "too-little-memory",
        "ulimit -v 8000000; maskmill create-pretraining-data --input_file many.txt --output_file out.tfrecord "
        "--vocab_file vocab.txt --dupe_factor 10000",
        "There is not enough memory",
        code=1,
        files={"many.txt": b"An apple is a fruit.\nA pear is another one.\n\n" * 40_000},
        shell=True,
    )
]

MISTAKES = [*MEMORY, *COMMANDS, *MISSING, *UNKNOWN, *STRAY, *VALUES, *RUNNING, *PRINTING]
