"""A look at a bucket before its first use: does Cloud Storage answer, are there credentials, is there such a bucket.

Beam and Google's libraries take one or two minutes of retries to answer each of these. Such patience belongs in the
middle of a run, where what has worked so far may fail for a moment.
"""

import functools
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_DEFAULT_PORTS = {"http": 80, "https": 443}


def check_path(path: str) -> None:
    """Looks, once in a process for each bucket, whether the bucket of a gs:// path can be used; passes other paths.

    Raises:
      UnusableInputError: Cloud Storage cannot be reached, there are no credentials, or there is no such bucket.
      RunFailedError: it answers with errors of its own: nothing is wrong with the path.
    """
    bucket = path.removeprefix("gs://").partition("/")[0] if path.startswith("gs://") else ""
    if bucket:
        _check_bucket(bucket)


@functools.cache
def _check_bucket(bucket: str) -> None:
    # Their import takes a second.
    import google.auth
    import requests
    from google.api_core import exceptions
    from google.auth import exceptions as auth_exceptions
    from google.cloud import storage
    from google.cloud.storage.retry import DEFAULT_RETRY

    name = f"gs://{bucket}"
    client = storage.Client.create_anonymous_client()
    _check_service(name, client.api_endpoint)
    missing = ""
    try:
        client = storage.Client(project="none", credentials=google.auth.default()[0])
    except auth_exceptions.DefaultCredentialsError as error:
        missing = _plain(error)  # a public bucket needs none
    retry = DEFAULT_RETRY.with_timeout(_ANSWER_SECONDS)
    try:
        next(iter(client.list_blobs(bucket, max_results=1, timeout=_ANSWER_SECONDS, retry=retry)), None)
    except exceptions.NotFound:
        raise UnusableInputError(f"{name}: there is no such bucket; correct its name, or create it.") from None
    except (exceptions.Unauthorized, exceptions.Forbidden, auth_exceptions.InvalidOperation) as error:
        # An account that may not list a bucket may still read or write in it: the use itself will tell.
        if missing:
            raise UnusableInputError(
                f"{name}: there are no usable Google credentials ({missing}); run `gcloud auth application-default "
                "login`, or name a service account's file in GOOGLE_APPLICATION_CREDENTIALS."
            ) from error
    except auth_exceptions.RefreshError as error:
        raise UnusableInputError(
            f"{name}: Google refuses the credentials ({_plain(error)}); renew them, for example with `gcloud auth "
            "application-default login`."
        ) from error
    except (exceptions.GoogleAPIError, auth_exceptions.GoogleAuthError, requests.RequestException) as error:
        cause = getattr(error, "cause", None) or error
        raise RunFailedError(
            f"{name}: Cloud Storage does not answer as it should ({_plain(cause)}); run the same command again later."
        ) from error


def _check_service(name: str, endpoint: str) -> None:
    """Connects to the service, or to the proxy before it, and closes the connection."""
    import urllib.parse
    import urllib.request

    from maskmill.storage import network

    url = urllib.parse.urlsplit(endpoint)
    if url.scheme not in _DEFAULT_PORTS or not url.hostname:
        raise UnusableInputError(
            f"{name}: {endpoint!r} is no address of a storage service; STORAGE_EMULATOR_HOST should be like "
            "http://localhost:9000."
        )
    via = ""
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy and not urllib.request.proxy_bypass(url.hostname):
        via, url = f" through the proxy {proxy}", urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    port = url.port or _DEFAULT_PORTS.get(url.scheme, _DEFAULT_PORTS["http"])
    failure = network.connection_failure(url.hostname or "", port, _CONNECT_SECONDS)
    if failure:
        raise UnusableInputError(f"{name}: {endpoint} cannot be reached{via} ({failure}); check the network.")


def _plain(error: Any) -> str:
    """The message of an error, as part of a sentence."""
    text = " ".join(str(getattr(error, "message", None) or error).split())
    return text.rstrip(".") or type(error).__name__
