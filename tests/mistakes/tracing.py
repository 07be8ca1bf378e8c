"""Mistakes with lineages, and with who is told of a build."""

from mistakes.table import Mistake


def row(name: str, command: str, says: str, **more: object) -> Mistake:
    return Mistake(name=f"tracing-{name}", command=command, says=says, **more)  # type: ignore[arg-type]


LINEAGE = [
    row("nothing", "lineage", "PATH is missing; name one checkpoint, shard, release or build"),
    row("two-paths", "lineage dump.xml part-00000-of-00001", "part-00000-of-00001: this is a second path"),
    row("no-root", "lineage dump.xml", "dump.xml: this is not a checkpoint, shard, .*; to see what was made .* --root"),
    row("nothing-there", "lineage no-such-file", "no-such-file: this is not a checkpoint, shard, release or build"),
    row("nothing-below", "lineage dump.xml --root .", "dump.xml: nothing below .* was made of this file"),
]

EVENTS = [
    row(
        "webhook-no-address", "build demo.yaml --events.webhook example.org", "events.webhook is 'example.org'; it must"
    ),
    row(
        "secret-without-webhook",
        "build demo.yaml --events.webhook_secret_file vocab.txt",
        "events.webhook_secret_file signs what goes to events.webhook, which is missing",
    ),
    row(
        "no-such-secret",
        "build demo.yaml --events.webhook http://127.0.0.1:9 --events.webhook_secret_file no-such-file",
        "events.webhook_secret_file no-such-file: this file does not exist; check the path",
    ),
    row(
        "empty-secret",
        "build demo.yaml --events.webhook http://127.0.0.1:9 --events.webhook_secret_file empty",
        "events.webhook_secret_file empty: this file is empty; write the secret into it",
        files={"empty": b"\n"},
    ),
    row(
        "openlineage-elsewhere",
        "build demo.yaml --events.openlineage gs://bucket/events",
        "events.openlineage is 'gs://bucket/events'; it must be an http:// or https:// address, or a path",
    ),
]

MISTAKES = [*LINEAGE, *EVENTS]
