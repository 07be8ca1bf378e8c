"""Events of builds: what a receiver gets, what files say, and that nobody who fails stops a build."""

import dataclasses
import hashlib
import hmac
import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from data_sets.whole_builds import Made, extract_text, make_build
from prometheus_client.parser import text_string_to_metric_families
from servers.event_receiver import Receiver, receive

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import fingerprints, names
from maskmill.storage import manifest, outcomes
from maskmill.storage.reuse import Reused, write_reused
from pipelines.events import event_summary, events
from pipelines.settings.release_options import EventsOptions

NAME = "enwiki-2016-05-01-0123abcd"
SECRET = b"a secret of the test"


def result_of(directory: str) -> outcomes.Result:
    result = outcomes.last_result(directory)
    assert result is not None
    return result


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("whole")
    return make_build(folder / "build", extract_text(folder / "text", documents=6, eval_articles=1), picked=5)


@pytest.fixture
def run(whole: Made, tmp_path: Path) -> event_summary.Run:
    """The run of a release that has its data, and is not complete yet."""
    directory = tmp_path / names.RELEASES / NAME
    whole.copy(directory)
    write_reused(str(directory / "text"), Reused(previous="before", pages=9, reused_pages=7, shards=3, reused_shards=1))
    return event_summary.Run(
        id=str(uuid.UUID(int=5)),
        output=str(tmp_path),
        directory=str(directory),
        release=NAME,
        config="build.yaml",
        options={"extract": {"num_eval_articles": 1}, "events": {"webhook": "https://example.org/token"}},
        stages=("extract", "examples", "eval", "train"),
        dump={"wiki": "enwiki", "date": "2016-05-01"},
    )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receive() as one:
        yield one


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    return str(path)


def build(told: events.Events, run: event_summary.Run, *, complete: bool = True) -> None:
    """Tells of a whole build that trains nothing."""
    told.started(run)
    for name, folder in (("extract", "text"), ("examples", "examples"), ("eval", "eval")):
        told.stage_finished(
            run,
            name,
            result_of(f"{run.directory}/{folder}"),
        )
    if complete:
        (Path(run.directory) / names.RECORD).write_text("{}")
    told.finished(run)
    told.close()


def signed(received: Any) -> str:
    content = received.headers["X-Maskmill-Timestamp"].encode() + b"." + received.body
    return f"sha256={hmac.new(SECRET, content, hashlib.sha256).hexdigest()}"


def test_a_release_has_a_summary_beside_it(run: event_summary.Run, tmp_path: Path) -> None:
    build(events.Events(EventsOptions(summary=str(tmp_path / "last.json"))), run)
    summary = json.loads((tmp_path / "summaries" / f"{NAME}.json").read_text())
    assert summary == json.loads((tmp_path / "last.json").read_text())
    assert summary["schema_version"] == 1
    assert summary["run"]["status"] == "done"
    assert (summary["run"]["exit_status"], summary["run"]["error"]) == (0, None)
    assert summary["complete"]
    assert (summary["release"], summary["directory"]) == (NAME, run.directory)
    digests = fingerprints.manifest_digests(run.directory)
    assert summary["fingerprint"] == fingerprints.fingerprint_of(digests)
    assert {name: stage["manifest_sha256"] for name, stage in summary["stages"].items()} == digests
    assert summary["stages"]["extract"]["reused"]["reused_pages"] == 7
    assert summary["stages"]["examples"]["counts"]["train"]["examples"] > 0
    assert summary["missing_stages"] == ["train"]


def test_a_summary_does_not_tell_the_address_of_the_webhook(run: event_summary.Run, tmp_path: Path) -> None:
    build(events.Events(EventsOptions()), run)
    text = (tmp_path / "summaries" / f"{NAME}.json").read_text()
    assert "example.org" not in text
    assert "num_eval_articles" in text


def test_a_run_of_one_stage_has_no_fingerprint_yet(run: event_summary.Run, tmp_path: Path) -> None:
    build(events.Events(EventsOptions()), run, complete=False)
    summary = json.loads((tmp_path / "summaries" / f"{NAME}.json").read_text())
    assert (summary["complete"], summary["fingerprint"]) == (False, None)


def test_stages_that_were_there_already_are_told_at_the_end(run: event_summary.Run, tmp_path: Path) -> None:
    told = events.Events(EventsOptions())
    told.started(run)
    told.stage_finished(run, "eval", result_of(f"{run.directory}/eval"))
    told.finished(run)
    summary = json.loads((tmp_path / "summaries" / f"{NAME}.json").read_text())
    assert {name: stage["ran"] for name, stage in summary["stages"].items()} == {
        "eval": True,
        "extract": False,
        "examples": False,
    }


def test_a_failed_build_says_how_it_ended(run: event_summary.Run, tmp_path: Path) -> None:
    told = events.Events(EventsOptions())
    told.started(run)
    told.failed(run, UnusableInputError("dump.xml: this file is cut off."))
    told.close()
    summary = json.loads((tmp_path / "summaries" / f"{NAME}.json").read_text())
    assert summary["run"]["status"] == "failed"
    assert (summary["run"]["exit_status"], summary["run"]["error"]) == (2, "dump.xml: this file is cut off.")
    assert events.how_it_ended(RunFailedError("The disk is full.")).exit_status == 1
    assert events.how_it_ended(KeyError("x")).error == "KeyError: 'x'"


def test_a_summary_that_cannot_be_written_is_one_warning(
    run: event_summary.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    build(events.Events(EventsOptions(summary=str(tmp_path / "file" / "last.json"))), run)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("maskmill: warning: events.summary: ")
    assert (tmp_path / "summaries" / f"{NAME}.json").exists()


def test_a_webhook_gets_each_event_signed(run: event_summary.Run, receiver: Receiver, secret_file: str) -> None:
    build(events.Events(EventsOptions(webhook=receiver.url, webhook_secret_file=secret_file)), run)
    assert [one.json["event"] for one in receiver.received] == [
        "build.started",
        *["stage.finished"] * 3,
        "build.finished",
    ]
    for one in receiver.received:
        assert one.headers["X-Maskmill-Signature-256"] == signed(one)
        assert one.headers["X-Maskmill-Event"] == one.json["event"]
        assert one.headers["Idempotency-Key"] == one.json["id"]
    assert len({one.json["id"] for one in receiver.received}) == 5
    assert receiver.received[1].json["stage"]["name"] == "extract"
    assert receiver.received[-1].json["summary"]["complete"]


def test_a_changed_body_or_time_does_not_fit_the_signature(
    run: event_summary.Run, receiver: Receiver, secret_file: str
) -> None:
    told = events.Events(EventsOptions(webhook=receiver.url, webhook_secret_file=secret_file))
    told.nothing_new(run.output)
    told.close()
    (one,) = receiver.received
    later = dataclasses.replace(one, headers=one.headers | {"X-Maskmill-Timestamp": "2000000000"})
    other = dataclasses.replace(one, body=one.body.replace(b"nothing.new", b"build.failed"))
    signature = one.headers["X-Maskmill-Signature-256"]
    assert signed(one) == signature
    assert signature not in (signed(later), signed(other))


def test_a_server_that_fails_for_a_while_gets_the_same_event_again(
    run: event_summary.Run, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.statuses.extend([503, 429])
    told = events.Events(EventsOptions(webhook=receiver.url))
    told.nothing_new(run.output)
    told.close()
    assert len(receiver.received) == 3
    assert len({one.body for one in receiver.received}) == 1
    assert len({one.headers["Idempotency-Key"] for one in receiver.received}) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("status", [400, 404, 410, 302])
def test_a_server_that_refuses_is_one_warning_without_the_address(
    status: int, run: event_summary.Run, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.statuses.extend([status] * 5)
    receiver.headers = {"Location": receiver.url} if status == 302 else {}
    build(events.Events(EventsOptions(webhook=receiver.url)), run)
    assert len(receiver.received) == 5
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(
        f"maskmill: warning: events.webhook: 127.0.0.1: 5 of 5 events could not be delivered ({status}"
    )
    assert "/hook" not in said


def test_a_server_that_asks_for_more_time_than_there_is_gets_no_second_try(
    run: event_summary.Run, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.statuses.append(429)
    receiver.headers = {"Retry-After": "50"}
    told = events.Events(EventsOptions(webhook=receiver.url), last_seconds=2.0)
    told.nothing_new(run.output)
    told.close()
    assert len(receiver.received) == 1
    assert "1 of 1 events could not be delivered (429" in capsys.readouterr().err


def test_a_silent_server_holds_up_nothing(
    run: event_summary.Run, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.delay = 60.0
    told = events.Events(EventsOptions(webhook=receiver.url), last_seconds=0.3)
    build(told, run)  # as long as the server's delay, if it were waited for
    assert len(receiver.received) == 1
    assert "5 of 5 events could not be delivered (no answer in time)" in capsys.readouterr().err


def test_no_server_is_one_warning(run: event_summary.Run, capsys: pytest.CaptureFixture[str]) -> None:
    with receive() as gone:
        url = gone.url
    build(events.Events(EventsOptions(webhook=url), last_seconds=0.3), run)
    said = capsys.readouterr().err
    assert re.fullmatch(r"maskmill: warning: events.webhook: 127.0.0.1: 5 of 5 events .* \(.+\); the build .*\n", said)


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/", "http://127.0.0.1:1/ä", "http://a b/"])
def test_an_address_that_is_none_is_one_warning(
    url: str, run: event_summary.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    told = events.Events(EventsOptions(webhook=url), last_seconds=5.0)
    told.nothing_new(run.output)
    told.close()
    assert "1 of 1 events could not be delivered (this address is none)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "fault"), [(None, "this file does not exist"), (b"\n", "this file is empty")], ids=["gone", "empty"]
)
def test_a_secret_that_is_none_is_refused_before_any_work(content: bytes | None, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnusableInputError, match=fault):
        events.Events(EventsOptions(webhook="http://127.0.0.1:1", webhook_secret_file=str(path)))


def metrics_of(path: Path) -> dict[tuple[str, str], float]:
    """The values in a file of metrics, by metric and stage, as Prometheus' own parser reads them."""
    families = list(text_string_to_metric_families(path.read_text()))
    assert all(family.type == "gauge" and family.documentation for family in families)
    return {
        (sample.name.removeprefix("maskmill_"), sample.labels.get("stage", "")): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_tell_of_a_build(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "maskmill.prom"
    build(events.Events(EventsOptions(metrics=str(path)), clock=iter(range(1000, 2000)).__next__), run)
    found = metrics_of(path)
    made = manifest.read_manifest(f"{run.directory}/examples")
    assert found["build_exit_status", ""] == 0
    assert found["build_last_success_timestamp_seconds", ""] == found["build_last_run_timestamp_seconds", ""]
    assert found["build_duration_seconds", ""] == found["build_last_run_timestamp_seconds", ""] - 1000
    assert found["build_documents", ""] == 6
    assert found["build_pages", ""] == 9
    assert found["build_reused_pages", ""] == 7
    assert found["build_reused_shards", "extract"] == 1
    assert found["build_examples", ""] == sum(made["counts"][split]["examples"] for split in ("train", "eval"))
    assert found["build_bytes", "examples"] == sum(shard["bytes"] for shard in made["shards"])
    assert found["build_dump_timestamp_seconds", ""] == 1462060800
    assert found["build_info", ""] == 1


def test_a_failed_build_leaves_the_metrics_of_the_last_success(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "maskmill.prom"
    build(events.Events(EventsOptions(metrics=str(path)), clock=lambda: 1000.0), run)
    before = metrics_of(path)
    told = events.Events(EventsOptions(metrics=str(path)), clock=lambda: 2000.0)
    told.started(run)
    told.failed(run, RunFailedError("The disk is full."))
    after = metrics_of(path)
    changed = {name for (name, stage), value in after.items() if before[name, stage] != value}
    assert changed == {"build_exit_status", "build_last_run_timestamp_seconds", "last_check_timestamp_seconds"}
    assert after["build_exit_status", ""] == 1


def test_a_look_that_finds_nothing_new_is_a_metric(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "maskmill.prom"
    told = events.Events(EventsOptions(metrics=str(path)), clock=lambda: 3000.0)
    told.nothing_new(run.output)
    assert metrics_of(path) == {("last_check_timestamp_seconds", ""): 3000.0}


def test_a_part_of_a_build_is_no_success(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "maskmill.prom"
    build(events.Events(EventsOptions(metrics=str(path))), run, complete=False)
    assert ("build_last_success_timestamp_seconds", "") not in metrics_of(path)


def test_one_file_has_the_metrics_of_several_data_sets(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "maskmill.prom"
    odd = '/data\\of\n"sets"'
    for output in (run.output, odd):
        told = events.Events(EventsOptions(metrics=str(path)))
        told.nothing_new(output)
    (family,) = text_string_to_metric_families(path.read_text())
    assert {sample.labels["output"] for sample in family.samples} == {run.output, odd}


def test_a_file_of_something_else_is_not_written_over(
    run: event_summary.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "node.prom"
    path.write_text("node_load1 0.5\n")
    told = events.Events(EventsOptions(metrics=str(path)))
    told.nothing_new(run.output)
    assert path.read_text() == "node_load1 0.5\n"
    assert "holds something else than maskmill's metrics" in capsys.readouterr().err


def test_a_slow_server_is_waited_for_at_the_end(run: event_summary.Run, receiver: Receiver) -> None:
    receiver.delay = 0.2
    told = events.Events(EventsOptions(webhook=receiver.url))
    build(told, run)
    deadline = time.monotonic() + 120
    while len(receiver.received) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(receiver.received) == 5


def test_a_release_says_of_what_dump_it_is(run: event_summary.Run, tmp_path: Path) -> None:
    build(events.Events(EventsOptions()), dataclasses.replace(run, dump={}))
    summary = json.loads((tmp_path / "summaries" / f"{NAME}.json").read_text())
    assert summary["dump"] == {"wiki": "enwiki", "date": "2016-05-01"}


def test_a_release_that_is_complete_already_has_its_summary_and_fingerprint(
    run: event_summary.Run, receiver: Receiver, tmp_path: Path
) -> None:
    (Path(run.directory) / names.RECORD).write_text("{}")
    told = events.Events(EventsOptions(webhook=receiver.url, metrics=str(tmp_path / "maskmill.prom")))
    told.nothing_new(run.output, run)
    told.close()
    summary = json.loads((tmp_path / "summaries" / f"{NAME}.json").read_text())
    assert summary["complete"]
    assert summary["fingerprint"] == fingerprints.fingerprint_of(fingerprints.manifest_digests(run.directory))
    assert not any(stage["ran"] for stage in summary["stages"].values())
    assert [one.json["event"] for one in receiver.received] == ["nothing.new"]
    assert list(metrics_of(tmp_path / "maskmill.prom")) == [("last_check_timestamp_seconds", "")]
