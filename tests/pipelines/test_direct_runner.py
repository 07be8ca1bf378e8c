"""Beam's DirectRunner, which tries to get Prism before it runs a pipeline itself: a slow download is named."""

import contextlib
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY, digests

from pipelines.commands import cli
from pipelines.running import beam_runner

pytestmark = pytest.mark.builds


@pytest.fixture
def slow_proxy() -> Iterator[str]:
    """The URL of a proxy that takes a request, says nothing for three seconds, and hangs up."""
    with socket.create_server(("localhost", 0)) as server:
        server.settimeout(60)

        def hang() -> None:
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                threading.Event().wait(3)
                connection.close()

        thread = threading.Thread(target=hang, daemon=True)
        thread.start()
        yield f"http://localhost:{server.getsockname()[1]}"
        thread.join()


def test_the_runner_that_needs_no_download_is_named(
    slow_proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beam_runner, "_PRISM_SECONDS", 1.0)
    monkeypatch.setenv("https_proxy", slow_proxy)
    monkeypatch.setattr(urllib.request, "_opener", None)  # it would keep the proxies of an earlier call
    monkeypatch.setenv("HOME", str(tmp_path))  # Beam keeps what it has downloaded there
    (tmp_path / "notes.txt").write_text("Cats purr. Dogs bark.\n")
    command = ["extract", f"--input={tmp_path}/notes.txt", "--num_eval_articles=0"]
    assert cli.main([*command, f"--output={tmp_path}/here", *IN_MEMORY]) == 0
    capsys.readouterr()
    assert cli.main([*command, f"--output={tmp_path}/direct", "--runner=directrunner"]) == 0
    assert "still tries to get and start Prism; --runner=FnApiRunner does without it" in capsys.readouterr().err
    assert digests(tmp_path / "direct", manifests=False) == digests(tmp_path / "here", manifests=False)
