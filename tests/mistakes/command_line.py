"""Mistakes in a command line: its flags, their values, and what is done with what it prints."""

from maskmill.sentences.training import PARAMETER_FILES
from mistakes.table import Mistake

EXTRACT = "extract --input dump.xml --output out"
EXAMPLES = "examples --input part-00000-of-00001 --output out --vocab_file vocab.txt"
CREATE = "create-pretraining-data --input_file part-00000-of-00001 --output_file out.tfrecord --vocab_file vocab.txt"
PICK = "pick-eval --input_tfrecord examples.tfrecord --output_tfrecord out.tfrecord"


def row(name: str, command: str, says: str, **more: object) -> Mistake:
    return Mistake(f"line-{name}", command, says, **more)  # type: ignore[arg-type]


COMMANDS = [
    row("misspelt-command", "extrakt --input dump.xml --output out", "no such command; did you mean extract"),
    row("no-such-command", "frobnicate", r"no such command; see maskmill --help"),
    row("flag-without-command", "--input dump.xml", r"--?input|dump\.xml: "),
    row("only-quiet", "--quiet", "--quiet: a command is missing"),
    row("only-log-format", "--log_format text", "--log_format: a command is missing"),
    row("train-misspelt", "trian --output_dir out", r"did you mean train\?$"),
    row("command-with-underscores", "create_pretraining_data", r"--input_file .* are missing|and --vocab_file"),
    row("command-as-the-reference-s-program", "pick_eval.py", r"--input_tfrecord \(.*\) and --output_tfrecord"),
]

MISSING = [
    row("extract-no-output", "extract --input dump.xml", r"--output is missing: directory of the text shards"),
    row("extract-no-input", "extract --output out", r"--input is missing"),
    row("examples-no-vocabulary", "examples --input part-00000-of-00001 --output out", "--vocab_file is missing"),
    row("index-nothing", "index", "FILE is missing"),
    row("train-nothing", "train", "--output_dir is missing"),
    row("convert-nothing", "convert-checkpoint", r"--input \(.*\), --output \(.*\) and --format \(.*\) are missing"),
    row("value-missing-at-the-end", "extract --input dump.xml --output", "--output: its value is missing"),
    row("value-missing-before-a-flag", "extract --input --output out", "--input: its value is missing"),
    row("number-missing", f"{EXTRACT} --shard_size_mb", "--shard_size_mb: its value is missing; give a number"),
    row("choice-missing", f"{EXTRACT} --headings", "--headings: its value is missing; give one of drop, keep"),
    row("beam-value-missing", f"{EXTRACT} --runner", "--runner: its value is missing; give a value"),
    row("workers-missing", f"{EXTRACT} --workers --quiet", "--workers: its value is missing; give a whole number"),
    row("only-commas", "extract --input , --output out", "No input was named|--input is empty"),
]

UNKNOWN = [
    row("misspelt-runner", f"{EXTRACT} --runner DataflowRuner", r"not 'DataflowRuner'; did you mean DataflowRunner\?$"),
    row("misspelt-choice", f"{EXAMPLES} --compat mlperff", r"not 'mlperff'; did you mean mlperf\?$"),
    row("flag-of-absl", f"{CREATE} --alsologtostderr", r"this flag of absl's has no meaning here; leave it out"),
    row("dashes-for-underscores", f"{EXTRACT} --shard-size-mb 3", "did you mean --shard_size_mb"),
    row("negated-flag-with-a-value", f"{EXTRACT} --nokeep_titles=True", "--nokeep_titles takes no value"),
    row("value-for-a-switch-of-beam", f"{EXTRACT} --streaming=yes", "--streaming takes no value"),
]

STRAY = [
    row("stray-argument", f"{EXTRACT} stray", "stray: this argument belongs to no flag"),
    row("unquoted-pattern", "extract --input dump.xml dump.xml.bz2 --output out", "quote a pattern, and separate"),
    row("input-without-flag", "extract dump.xml --output out", r"dump\.xml: this argument belongs to no flag"),
    row("stray-after-dashes", f"{EXTRACT} -- stray", "stray: this argument belongs to no flag"),
    row("stray-number", f"{EXAMPLES} 3", "3: this argument belongs to no flag"),
    row("input-given-twice", "extract --input dump.xml --input dump.xml.bz2 --output out", "--input is given twice"),
    row("output-given-twice", f"{EXTRACT} --output other", r"--output is given twice \('out', then 'other'\)"),
    row("home-of-nobody", "extract --input dump.xml --output=~nobody2/x", r"no user nobody2; write \./~nobody2/x"),
    row("input-in-the-home-of-nobody", "extract --input=~nobody2/x --output=out", "there is no user nobody2"),
    row("name-that-steers-the-terminal", "extract --input 'no\x1b[31m\r.xml' --output o", r"no\\x1b\[31m\\r\.xml"),
    row("index-without-a-comma", "index examples.tfrecord --output a b", r"2 files|does not exist|^"),
    row("switch-with-a-misspelt-value", f"{EXAMPLES} --do_lower_case Flase", "--do_lower_case must be true or false"),
]

VALUES = [
    row("text-for-a-number", f"{EXTRACT} --shard_size_mb abc", "--shard_size_mb must be a number, not 'abc'"),
    row("shard-size-nan", f"{EXTRACT} --shard_size_mb nan", "--shard_size_mb must be a finite number"),
    row("shard-size-infinite", f"{EXTRACT} --shard_size_mb inf", "--shard_size_mb must be a finite number"),
    row("shard-size-negative", f"{EXTRACT} --shard_size_mb -1", "--shard_size_mb must be"),
    row("masked-share-above-one", f"{EXAMPLES} --masked_lm_prob 1.5", "masked_lm_prob 1.5"),
    row("eval-fraction-one", f"{EXTRACT} --eval_fraction 1", "--eval_fraction must be at least 0 and below 1"),
    row("eval-articles-negative", f"{EXTRACT} --num_eval_articles -5", "--num_eval_articles must be 0 or more"),
    row("documents-zero", f"{EXTRACT} --max_documents 0", "--max_documents must be 1 or more"),
    row("dupe-zero", f"{EXAMPLES} --dupe_factor 0", "dupe_factor 0"),
    row("dupe-of-ten-digits", f"{CREATE} --dupe_factor 1000000000", "dupe_factor 1000000000"),
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
    row("date-in-words", f"{EXTRACT} --dump_date yesterday", "--dump_date is 'yesterday'; it must be a day"),
    row(
        "no-such-language", f"{EXTRACT} --language klingon", "--language=klingon names no language that maskmill knows"
    ),
    row("language-misspelt", f"{EXTRACT} --language ukranian", r"\(the nearest is ukrainian\); give a code such as uk"),
    row("language-with-a-folder-that-is-not-there", f"{EXTRACT} --language punkt/uk", "collocations.tab is missing"),
    row(
        "language-with-a-folder-of-other-files",
        f"{EXTRACT} --language ./punkt",
        r"\./punkt: its files do not hold Punkt parameters",
        files={f"punkt/{name}": b"one\n" for name in PARAMETER_FILES},
    ),
    row(
        "language-that-mlperf-would-train-for",
        f"{EXTRACT} --compat mlperf --language uk",
        "--compat mlperf splits sentences by Punkt alone, and there are no parameters for --language=uk",
    ),
    row("extractor-of-the-reference", f"{EXTRACT} --compat mlperf --extractor maskmill", "leave --extractor out"),
    row("pick-none", f"{PICK} --num_examples_to_pick 0", "--num_examples_to_pick must be 1 or more"),
    row("log-level-unknown", f"{EXTRACT} --log_level LOUD", "--log_level must be one of DEBUG, INFO"),
    row("log-format-unknown", f"{EXTRACT} --log_format xml", "--log_format must be one of text, json"),
    row("log-format-missing", f"{EXTRACT} --log_format", "--log_format: its value is missing"),
    row("quiet-and-log-level", f"{EXTRACT} --quiet --log_level INFO", "--quiet and --log_level exclude each other"),
    row("eval-number-and-share", f"{EXTRACT} --num_eval_articles 1 --eval_fraction 0.1", "exclude each other"),
]

RUNNING = [
    row("workers-zero", f"{EXTRACT} --workers 0", "--workers must be 1 or more, not 0"),
    row("workers-too-many", f"{EXTRACT} --workers 1000000", r"--workers 1000000: this machine has \d+ cores"),
    row("direct-workers-too-many", f"{EXTRACT} --direct_num_workers 1000000", r"this machine has \d+ cores"),
    row("workers-twice", f"{EXTRACT} --workers 2 --direct_num_workers 2", "--workers and --direct_num_workers both"),
    row(
        "workers-on-flink",
        f"{EXTRACT} --workers 2 --runner FlinkRunner",
        "--workers counts the processes of Local",
    ),
    row("direct-workers-negative", f"{EXTRACT} --direct_num_workers -3", "--direct_num_workers must be 1 or more"),
    row(
        "direct-workers-text",
        f"{EXTRACT} --direct_num_workers two",
        "--direct_num_workers: invalid int value",
    ),
    row(
        "running-mode-unknown",
        f"{EXTRACT} --direct_running_mode fast",
        "--direct_running_mode: invalid choice",
    ),
    row("runner-unknown", f"{EXTRACT} --runner FlinkRuner", "--runner must be one of .*FlinkRunner"),
    row("runner-of-nobody", f"{EXTRACT} --runner x.y.Z", r"--runner=x\.y\.Z: it cannot be imported"),
    row("streaming", f"{EXTRACT} --streaming", "--streaming has no use: every pipeline here is bounded"),
    row("setup-file-here", f"{EXTRACT} --setup_file setup.py", "--setup_file has no use with LocalRunner"),
    row("running-mode-here", f"{EXTRACT} --direct_running_mode in_memory", "--direct_running_mode has no use"),
    row("template-here", f"{EXTRACT} --template_location gs://b/t", "--template_location has no use with LocalRunner"),
    row("dry-run-here", f"{EXTRACT} --dry_run=True", "--dry_run has no use with LocalRunner"),
    row(
        "job-file-on-flink",
        f"{EXTRACT} --runner flink --dataflow_job_file job.json",
        "--dataflow_job_file has no use with FlinkRunner",
    ),
    row(
        "requirements-missing",
        f"{EXTRACT} --runner FlinkRunner --requirements_file none.txt",
        r"none\.txt: there is no such file; correct --requirements_file",
    ),
    row(
        "flink-version-unknown",
        f"{EXTRACT} --runner FlinkRunner --flink_version 7.7",
        "Beam refuses a flag: argument --flink_version",
    ),
    row("audit-entries-no-json", f"{EXTRACT} --runner dataflow --gcs_custom_audit_entries x", "Beam refuses a flag"),
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
