"""A webhook: each event is a POST of JSON, signed where there is a secret.

    Content-Type: application/json
    Idempotency-Key: UUID                the same at each try of one event; `id` in the JSON
    X-Maskmill-Event: build.finished     `event` in the JSON
    X-Maskmill-Timestamp: 1795401619     seconds since the epoch, of this try
    X-Maskmill-Signature-256: sha256=…   HMAC-SHA256 of TIMESTAMP, a dot and the body, in hexadecimal

The timestamp is signed: a receiver that refuses old ones cannot be told the same again by somebody who has listened.
"""

import dataclasses
import hashlib
import hmac
import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from maskmill.errors import RunFailedError
from maskmill.storage.web_client import TransientError

_SILENCE = 10.0  # seconds without a byte after which a try has failed
_MOST_WAIT = 60.0  # of what a server asks for
_TRY_AGAIN = {408, 425, 429}


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
        try:
            request = urllib.request.Request(self.url, data=post.body, headers=headers, method="POST")
            with urllib.request.build_opener(_NoRedirects).open(request, timeout=_SILENCE):
                pass  # the status says all
        except urllib.error.HTTPError as error:
            with error:
                _refuse(error)
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise RunFailedError(f"its certificate is not trusted: {error.reason.verify_message}") from error
            raise TransientError(_plain(error.reason)) from error
        except (ValueError, http.client.InvalidURL) as error:
            raise RunFailedError("this address is none") from error
        except (OSError, http.client.HTTPException) as error:
            raise TransientError(_plain(error)) from error


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """What X-Maskmill-Signature-256 is for a body that is sent at this time."""
    return f"sha256={hmac.new(secret, timestamp.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET without its body, and a signed one may go to somebody else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follows none."""


def _refuse(error: urllib.error.HTTPError) -> None:
    """Raises what a status means that is no success."""
    text = f"{error.code} {error.reason}".rstrip()
    if error.code in _TRY_AGAIN or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        wait = (error.headers.get("Retry-After") or "") if error.headers else ""
        raise TransientError(text, wait=min(float(wait), _MOST_WAIT) if wait.isdecimal() else 0.0) from error
    raise RunFailedError(text) from error


def _plain(error: object) -> str:
    """An error of a connection as part of a sentence."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".") or type(error).__name__
