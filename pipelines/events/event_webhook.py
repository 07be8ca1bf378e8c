"""A webhook: each event is a POST of JSON, signed where there is a secret.

    Content-Type: application/json
    Idempotency-Key: UUID                the same at each try of one event; `id` in the JSON
    X-Maskmill-Event: build.finished     `event` in the JSON
    X-Maskmill-Timestamp: 1795401619     seconds since the epoch, of this try
    X-Maskmill-Signature-256: sha256=…   HMAC-SHA256 of TIMESTAMP, a dot and the body, in hexadecimal

The timestamp is signed: a receiver that refuses old ones cannot be told the same again by somebody who has listened.
"""

import contextlib
import dataclasses
import hashlib
import hmac
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus

from maskmill.errors import RunFailedError
from maskmill.storage.web_client import WebClient, seconds_of, status_of
from pipelines.events.event_delivery import refuse

_SILENCE = 10.0  # seconds without a byte after which a try has failed
_MOST_WAIT = 60.0  # of what a server asks for


@dataclasses.dataclass(frozen=True, kw_only=True)
class Post:
    """An event on its way. id: of the event. event: its name. body: JSON."""

    id: str
    event: str
    body: bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Webhook:
    """Where events are sent.

    Attributes:
      url: http:// or https://. It may hold a secret, so it is never printed.
      secret: that signs what is sent; None: nothing is signed.
      clock: gives seconds since the epoch.
    """

    url: str = dataclasses.field(repr=False)
    secret: bytes | None = dataclasses.field(repr=False)
    clock: Callable[[], float]

    @property
    def host(self) -> str:
        """The server's name."""
        return urllib.parse.urlsplit(self.url).hostname or ""

    def send(self, post: Post) -> None:
        """Makes one try.

        Raises:
          TransientError: another one may succeed.
          RunFailedError: the server does not take it.
        """
        timestamp = str(int(self.clock()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "maskmill",
            "Idempotency-Key": post.id,
            "X-Maskmill-Event": post.event,
            "X-Maskmill-Timestamp": timestamp,
        }
        if self.secret is not None:
            headers["X-Maskmill-Signature-256"] = signature(self.secret, timestamp, post.body)
        _check_address(self.url)
        client = WebClient()
        # Redirects are not followed: a POST would become a GET without its body, and a signed one may go to others.
        with (
            contextlib.closing(client),
            client.exchange(self.host, "POST", self.url, headers, post.body, silence=_SILENCE) as response,
        ):
            wait = seconds_of(response.headers.get("Retry-After", ""))
            if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                refuse(response.status, status_of(response), min(wait, _MOST_WAIT))


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """What X-Maskmill-Signature-256 is for a body that is sent at this time."""
    return f"sha256={hmac.new(secret, timestamp.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def _check_address(url: str) -> None:
    """Raises RunFailedError where an address is none."""
    try:
        is_one = url.isascii() and url.isprintable() and " " not in url and urllib.parse.urlsplit(url).port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise RunFailedError("this address is none")
