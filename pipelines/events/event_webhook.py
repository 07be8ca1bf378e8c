"""A webhook: each event is a POST of JSON, signed where there is a secret.

    Content-Type: application/json
    Idempotency-Key: UUID                the same at each try of one event; `id` in the JSON
    X-Maskmill-Event: build.finished     `event` in the JSON
    X-Maskmill-Timestamp: 1795401619     seconds since the epoch, of this try
    X-Maskmill-Signature-256: sha256=…   HMAC-SHA256 of TIMESTAMP, a dot and the body, in hexadecimal

The timestamp is signed: a receiver that refuses old ones cannot be told the same again by somebody who has listened.
"""

import contextlib
import hashlib
import hmac
import json
import urllib.parse
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.web_client import WebClient, seconds_of, status_of
from pipelines.events.event_delivery import Delivery, refuse
from pipelines.events.event_summary import Told, iso

_SILENCE = 10.0  # seconds without a byte after which a try has failed
_MOST_WAIT = 60.0  # of what a server asks for


class Webhook:
    """Sends each event.

    url: http:// or https://. It may hold a secret, so it is never printed. secret_file: has what signs the events;
    None: nothing is signed. clock: gives seconds since the epoch.

    Raises:
      UnusableInputError: the file cannot be read, or is empty.
    """

    def __init__(self, url: str, secret_file: str | None, clock: Callable[[], float]) -> None:
        self._url = url
        self._secret = _secret(secret_file)
        self._clock = clock
        self._delivery: Delivery[tuple[str, str, bytes]] = Delivery(self._send)  # id, event, body

    def tell(self, told: Told) -> None:
        """Sends an event with the summary of the build so far, or of a stage what became of it, in a thread."""
        id = str(uuid.uuid4())
        content: dict[str, Any] = {"id": id, "event": told.event, "time": iso(told.time), "output": told.output}
        if told.stage is not None:
            content |= {name: told.summary[name] for name in ("run", "release", "directory")} | {"stage": told.stage}
        elif told.run is not None:
            content["summary"] = told.summary
        self._delivery.give((id, told.event, json.dumps(content, sort_keys=True, default=str).encode()))

    def close(self, seconds: float) -> str | None:
        """Waits for what is still being sent; returns what was not."""
        failure = self._delivery.close(seconds)
        # The address itself may be a secret.
        return None if failure is None else f"{urllib.parse.urlsplit(self._url).hostname or ''}: {failure}"

    def _send(self, post: tuple[str, str, bytes]) -> None:
        """Makes one try; raises as `refuse`."""
        id, event, body = post
        timestamp = str(int(self._clock()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "maskmill",
            "Idempotency-Key": id,
            "X-Maskmill-Event": event,
            "X-Maskmill-Timestamp": timestamp,
        }
        if self._secret is not None:
            signature = hmac.new(self._secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            headers["X-Maskmill-Signature-256"] = f"sha256={signature}"
        _check_address(self._url)
        host = urllib.parse.urlsplit(self._url).hostname or ""
        # Redirects are not followed: a POST would become a GET without its body, and a signed one may go to others.
        with (
            contextlib.closing(WebClient()) as client,
            client.exchange(host, "POST", self._url, headers, body, silence=_SILENCE) as response,
        ):
            wait = seconds_of(response.headers.get("Retry-After", ""))
            if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                refuse(response.status, status_of(response), min(wait, _MOST_WAIT))


def _secret(path: str | None) -> bytes | None:
    """The secret in a file, without the end of its line; raises UnusableInputError if there is none."""
    if path is None:
        return None
    if not files.exists(path):
        raise UnusableInputError(f"events.webhook_secret_file {path}: this file does not exist; check the path.")
    secret = files.read_bytes(path).strip()
    if not secret:
        raise UnusableInputError(f"events.webhook_secret_file {path}: this file is empty; write the secret into it.")
    return secret


def _check_address(url: str) -> None:
    """Raises RunFailedError if an address is not one."""
    try:
        is_one = url.isascii() and url.isprintable() and " " not in url and urllib.parse.urlsplit(url).port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise RunFailedError("this address is none")
