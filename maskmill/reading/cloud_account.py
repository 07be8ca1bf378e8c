"""The Google account that asks for objects."""

import threading
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage.web_client import TransientError

_READ_SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"


class CloudAccount:
    """Nobody at first, and the machine's default account once somebody has looked for it."""

    def __init__(self) -> None:
        """Looks for nothing yet."""
        self._lock = threading.Lock()
        self._credentials: Any = None

    def headers(self, path: str, url: str) -> dict[str, str]:
        """What a request says about who asks; a token that has expired is renewed.

        Args:
          path: what is asked for, for messages.
          url: where.

        Raises:
          TransientError: Google does not give a token at the moment.
          UnusableInputError: Google refuses the account.
        """
        with self._lock:
            if self._credentials is None:
                return {}
            from google.auth import exceptions
            from google.auth.transport.requests import Request

            sent: dict[str, str] = {}
            try:
                self._credentials.before_request(Request(), "GET", url, sent)
            except (exceptions.RefreshError, exceptions.InvalidOperation) as error:
                raise UnusableInputError(
                    f"{path}: Google refuses the credentials ({_plain(error)}); renew them, for example with `gcloud "
                    "auth application-default login`."
                ) from error
            except exceptions.GoogleAuthError as error:
                raise TransientError(_plain(error)) from error
            return sent

    def look_for(self, path: str) -> None:
        """Finds the machine's default account.

        Raises:
          UnusableInputError: there is none.
        """
        # Their import takes a second.
        import google.auth
        from google.auth import exceptions

        with self._lock:
            if self._credentials is not None:
                return
            try:
                self._credentials = google.auth.default(scopes=[_READ_SCOPE])[0]
            except exceptions.DefaultCredentialsError as error:
                raise UnusableInputError(
                    f"{path}: access needs credentials, and there are no usable Google credentials ({_plain(error)}); "
                    "run `gcloud auth application-default login`, or name a service account's file in "
                    "GOOGLE_APPLICATION_CREDENTIALS."
                ) from error


def _plain(error: Exception) -> str:
    """An error as part of a sentence."""
    return " ".join(str(error.args[0] if error.args else error).split()).rstrip(".") or type(error).__name__
