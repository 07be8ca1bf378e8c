"""Mistakes about where a command runs: stores, clusters and hosts that are not there, disks that are full."""

from mistakes.table import Mistake

_TEXT = "part-00000-of-00001"
# A storage service, and a proxy before one, that are not there.
_NO_STORE = "STORAGE_EMULATOR_HOST=http://localhost:1"
_EXTRACT = "extract --input dump.xml --output out --num_eval_articles 1"
_EXAMPLES = "examples --input part-00000-of-00001 --vocab_file vocab.txt --output out"
_CREATE = "create-pretraining-data --input_file part-00000-of-00001 --vocab_file vocab.txt --output_file new.tfrecord"
_PICK = "pick-eval --input_tfrecord examples.tfrecord --output_tfrecord new.tfrecord --num_examples_to_pick 2"
_TRAIN = "train --input_file examples.tfrecord --output_dir run"
_FLINK = f"{_EXTRACT} --runner FlinkRunner"
_REMOTE_BUILD = b"""output: gs://some-bucket/build
extract: {input: dump.xml, num_eval_articles: 1}
examples: {vocab_file: vocab.txt}
"""

_STORE_COMMANDS = {
    "input-of-extract": "extract --input gs://some-bucket/dump.xml --output out",
    "glob-of-extract": "extract --input 'gs://some-bucket/dump*.xml' --output out",
    "output-of-extract": "extract --input dump.xml --output gs://some-bucket/out --num_eval_articles 1",
    "input-of-examples": "examples --input 'gs://some-bucket/part-*' --vocab_file vocab.txt --output out",
    "vocabulary-of-examples": f"examples --input {_TEXT} --vocab_file gs://some-bucket/vocab.txt --output out",
    "output-of-examples": f"examples --input {_TEXT} --vocab_file vocab.txt --output gs://some-bucket/out",
    "input-of-create": "create-pretraining-data --input_file gs://some-bucket/a --vocab_file vocab.txt --output_file x",
    "vocabulary-of-create": (
        "create-pretraining-data --input_file part-00000-of-00001 --vocab_file gs://some-bucket/v --output_file new"
    ),
    "output-of-create": (
        f"create-pretraining-data --input_file {_TEXT} --vocab_file vocab.txt --output_file gs://some-bucket/new"
    ),
    "input-of-pick-eval": (
        "pick-eval --input_tfrecord gs://some-bucket/x --output_tfrecord new --num_examples_to_pick 2"
    ),
    "output-of-pick-eval": (
        "pick-eval --input_tfrecord examples.tfrecord --output_tfrecord gs://some-bucket/x --num_examples_to_pick 2"
    ),
    "input-of-index": "index gs://some-bucket/x.tfrecord",
    "output-of-index": "index examples.tfrecord --output gs://some-bucket/x.idx",
    "output-of-build": "build remote.yaml",
}

MISTAKES = [
    # ---- Cloud Storage
    *(
        Mistake(
            f"store-that-is-not-there-as-{name}",
            f"{_NO_STORE} maskmill {command}",
            r"gs://some-bucket: http://localhost:1 cannot be reached \(Connection refused\); check the network",
            files={"remote.yaml": _REMOTE_BUILD} if "remote" in command else {},
            shell=True,
        )
        for name, command in _STORE_COMMANDS.items()
    ),
    Mistake(
        "store-on-an-unknown-host",
        "STORAGE_EMULATOR_HOST=http://no-such-host.invalid maskmill extract --input gs://bucket/x --output out",
        r"gs://bucket: http://no-such-host\.invalid cannot be reached \(",
        shell=True,
    ),
    Mistake(
        "store-without-a-scheme",
        "STORAGE_EMULATOR_HOST=localhost:9000 maskmill extract --input gs://bucket/x --output out",
        r"localhost:9000 cannot be reached \(.*; check the network, and STORAGE_EMULATOR_HOST, which should be like http://",
        shell=True,
    ),
    Mistake(
        "store-behind-a-proxy-that-is-not-there",
        (
            "STORAGE_EMULATOR_HOST=http://store.invalid http_proxy=http://localhost:1 no_proxy= "
            "maskmill extract --input gs://bucket/x --output out"
        ),
        r"cannot be reached through its proxy \(Connection refused\)",
        shell=True,
    ),
    # ---- clusters
    *(
        Mistake(
            f"job-service-that-is-not-there-for-{name}",
            f"{command} --job_endpoint localhost:1",
            r"localhost:1: no job service answers there \(Connection refused\); start it, .* --job_server_timeout",
        )
        for name, command in {
            "extract-on-flink": _FLINK,
            "build-on-flink": "build demo.yaml --runner FlinkRunner",
        }.items()
    ),
    *(
        Mistake(
            f"job-endpoint-{name}",
            f"{_FLINK} --job_endpoint {endpoint}",
            rf"--job_endpoint is {endpoint}: it must be HOST:PORT, as in localhost:8099",
        )
        for name, endpoint in {
            "without-a-port": "localhost",
            "with-an-empty-port": "localhost:",
            "with-letters-for-a-port": "localhost:http",
            "with-a-port-beyond-the-last": "localhost:70000",
            "without-a-host": ":8099",
            "with-a-scheme": "http://localhost:8099",
            "with-a-path": "localhost:8099/jobs",
        }.items()
    ),
    Mistake(
        "job-endpoint-on-an-unknown-host",
        f"{_FLINK} --job_endpoint no-such-host.invalid:8099",
        r"no-such-host\.invalid:8099: no job service answers there \(",
    ),
    *(
        Mistake(
            f"flink-master-{name}",
            (
                "maskmill extract --input $PWD/dump.xml --output $PWD/out --runner FlinkRunner "
                f"--job_server_java_launcher bash --flink_master {master}"
            ),
            rf"{says}: Flink's REST service does not answer \(.*\); start the cluster or correct --flink_master",
            shell=True,
        )
        for name, master, says in (
            ("that-is-not-there", "localhost:1", "http://localhost:1"),
            ("that-is-not-there-as-a-url", "http://localhost:1", "http://localhost:1"),
            ("on-an-unknown-host", "no-such-host.invalid:8081", r"http://no-such-host\.invalid:8081"),
            ("with-letters-for-a-port", "localhost:rest", "http://localhost:rest"),
        )
    ),
    Mistake(
        "flink-cluster-with-relative-paths",
        f"{_FLINK} --job_server_java_launcher bash --flink_master localhost:1",
        r"dump\.xml: on Flink's workers a relative path is another place; give an absolute path",
    ),
    Mistake(
        "flink-with-a-job-server-that-is-missing",
        f"{_FLINK} --flink_job_server_jar missing.jar --job_server_java_launcher bash",
        r"missing\.jar: there is no such job server; correct --flink_job_server_jar",
    ),
    Mistake(
        "flink-with-java-that-is-missing",
        f"{_FLINK} --job_server_java_launcher ./no-java",
        r"\./no-java: --runner=FlinkRunner needs Java 11 or 17",
    ),
    Mistake(
        "dataflow-with-local-files",
        f"{_EXTRACT} --runner DataflowRunner --project p --region r --temp_location gs://bucket/t",
        r"Dataflow's workers do not see this machine's files; give a gs:// path",
    ),
    # ---- several hosts
    *(
        Mistake(f"train-{name}", f"{_TRAIN} {flags}", says)
        for name, flags, says in (
            ("coordinator-without-a-port", "--coordinator node0", r"--coordinator is node0: it must be HOST:PORT"),
            ("coordinator-with-letters-for-a-port", "--coordinator node0:x", r"it must be HOST:PORT, as in node0:1234"),
            ("coordinator-without-a-host", "--coordinator :1234", r"--coordinator is :1234: it must be HOST:PORT"),
            ("coordinator-timeout-of-0", "--coordinator_timeout 0", r"--coordinator_timeout is 0: it must be a number"),
            (
                "process-beyond-the-last",
                "--process_id 2 --num_processes 2",
                r"--process_id is 2: .* below --num_processes",
            ),
            ("process-below-0", "--process_id=-1 --num_processes 2", r"--process_id is -1: it must be at least 0"),
        )
    ),
    # ---- disks
    *(
        Mistake(
            f"disk-full-in-{name}",
            f"ulimit -f {kilobytes}; maskmill {command}",
            r"this file cannot be written \(File too large\); nothing was left .*; make room and run the same",
            code=1,
            leaves=leaves,
            shell=True,
        )
        for name, command, kilobytes, leaves in (
            ("extract", _EXTRACT, 0, ("out",)),
            ("examples", _EXAMPLES, 2, ("out",)),
            ("build", "build demo.yaml", 2, ("build",)),
            ("create-pretraining-data", _CREATE, 2, ()),
            ("pick-eval", _PICK, 0, ()),
            ("index", "index examples.tfrecord", 0, ()),
        )
    ),
    *(
        Mistake(f"output-below-a-file-of-{name}", command, r"cannot be (made|written) \(.*\.txt is a file\)")
        for name, command in {
            "extract": "extract --input dump.xml --output book.txt/out --num_eval_articles 1",
            "examples": "examples --input part-00000-of-00001 --vocab_file vocab.txt --output book.txt/out",
            "create-pretraining-data": (
                "create-pretraining-data --input_file part-00000-of-00001 --vocab_file vocab.txt "
                "--output_file book.txt/new"
            ),
            "pick-eval": (
                "pick-eval --input_tfrecord examples.tfrecord --output_tfrecord book.txt/new --num_examples_to_pick 2"
            ),
        }.items()
    ),
]
