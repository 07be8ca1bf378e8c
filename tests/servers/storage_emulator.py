"""The Cloud Storage emulator, with the preconditions of the real service: `python storage_emulator.py start …`.

gcp-storage-emulator gives each object a generation, but ignores ifGenerationMatch. This program wraps its handlers:
they run one after the other, so a check and the change that follows are one step, while bodies come and go at the same
time. An upload's description and content are taken apart by their boundary (the emulator parses both as a mail), and
large objects have no md5, as composed ones of the real service: both took most of the time. Of an upload in parts it
tells what the service tells to a client that has lost an answer.

https://cloud.google.com/storage/docs/request-preconditions
"""

import contextlib
import email
import http.server
import json
import re
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gcp_storage_emulator import __main__ as emulator
from gcp_storage_emulator import server
from gcp_storage_emulator import storage as emulated
from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers import objects

sys.path.insert(0, str(Path(__file__).parent.parent))  # it is run as a program
from servers.serving import keep_freed_memory

Handler = Callable[..., None]
_GENERATION_HEADER = "X-Goog-Generation"
_LARGE = 1 << 20
_handling = threading.Lock()


def _target(request: Any, storage: Any) -> tuple[str, str]:
    """The bucket and the object that a request reads or writes."""
    params, query = request.params, request.query
    if "dest_object_id" in params:
        return params["dest_bucket_name"], params["dest_object_id"]
    if "object_id" in params:
        return params["bucket_name"], params["object_id"]
    if "name" in query:
        return params["bucket_name"], query["name"][0]
    if "upload_id" in query:
        return params["bucket_name"], storage.get_resumable_file_obj(query["upload_id"][0])["name"]
    fields = request.data.get("meta", request.data)  # of a multipart upload, or of the start of a resumable one
    return params["bucket_name"], fields["name"]


def _generation(storage: Any, bucket: str, name: str) -> int:
    """The generation of an object; 0 if there is none."""
    try:
        return int(storage.get_file_obj(bucket, name)["generation"])
    except NotFound:
        return 0


def _wanted(request: Any, name: str) -> int | None:
    return int(request.query[name][0]) if name in request.query else None


def _with_preconditions(handler: Handler) -> Handler:
    def handle(request: Any, response: Any, storage: Any, *args: Any, **kwargs: Any) -> None:
        _ = request.data  # reads the body
        with _handling:
            handle_alone(request, response, storage, *args, **kwargs)

    def handle_alone(request: Any, response: Any, storage: Any, *args: Any, **kwargs: Any) -> None:
        if "ifGenerationMatch" in request.query or "ifGenerationNotMatch" in request.query:
            generation = _generation(storage, *_target(request, storage))
            match, other = _wanted(request, "ifGenerationMatch"), _wanted(request, "ifGenerationNotMatch")
            if match not in (None, generation) or (other is not None and other == generation):
                response.status = HTTPStatus.PRECONDITION_FAILED
                response.json({"error": {"code": 412, "message": "conditionNotMet"}})
                return
        handler(request, response, storage, *args, **kwargs)

    return handle


def _download(request: Any, response: Any, storage: Any, *args: Any, **kwargs: Any) -> None:
    """Downloads an object, with its generation in a header, as the real service does."""
    with contextlib.suppress(NotFound):
        found = storage.get_file_obj(request.params["bucket_name"], request.params["object_id"])
        response[_GENERATION_HEADER] = found["generation"]
    _DOWNLOAD(request, response, storage, *args, **kwargs)


def _incomplete(response: Any, storage: Any, upload: str, fallback_end: int = 0) -> None:
    """Says how many bytes of an upload there are; of none, nothing, as the real service."""
    response.status = objects.GoogleHTTPStatus.RESUME_INCOMPLETE
    if received := storage.get_resumable_byte_count(upload):
        response["Range"] = f"bytes=0-{received - 1}"


def _finalize(response: Any, storage: Any, obj: Any, data: bytes, upload: str) -> None:
    """Makes an object of an upload, and remembers what was said of it."""
    _FINALIZE(response, storage, obj, data, upload)
    _finished[upload] = response._content


def _upload_part(request: Any, response: Any, storage: Any, *args: Any, **kwargs: Any) -> None:
    """Takes a part; says again of an upload that is finished what it has said, to a client that has not heard it."""
    finished = _finished.get(request.query["upload_id"][0])
    if finished is None:
        _UPLOAD_PART(request, response, storage, *args, **kwargs)
    else:
        response.json(json.loads(finished))


_finished: dict[str, str] = {}  # the answers to uploads in parts
_DOWNLOAD, _READ_DATA, _MD5 = objects.download, server._read_data, objects._md5
_FINALIZE, _UPLOAD_PART = objects._finalize_resumable_object, objects.upload_partial
_REPLACED = {_DOWNLOAD: _download, _UPLOAD_PART: _upload_part}
_BOUNDARY = re.compile('boundary="?([^";]+)')


def _read_data(request_handler: Any, query: Any) -> Any:
    """The body of a request; of an upload with its description, both, as the emulator wants them."""
    kind = request_handler.headers.get("Content-Type", "")
    named = _BOUNDARY.search(kind)
    if named is None or not kind.startswith("multipart/related"):
        return _READ_DATA(request_handler, query)
    body = request_handler.rfile.read(int(request_handler.headers["Content-Length"]))
    _, description, content = body.split(f"--{named[1]}\r\n".encode(), 2)
    header, _, content = content.partition(b"\r\n\r\n")
    return {
        "meta": json.loads(description.partition(b"\r\n\r\n")[2]),
        "content": content[: content.rindex(f"\r\n--{named[1]}--".encode())],
        "content-type": email.message_from_bytes(header).get_content_type(),
    }


def main() -> None:
    """Runs the emulator with this process's arguments."""
    keep_freed_memory()
    emulated.Storage._bucket_soft_delete_retention_seconds = lambda storage, bucket: 0  # a week is too long for tests
    objects.download = _download  # which `get` calls
    objects._resumable_incomplete, objects._finalize_resumable_object = _incomplete, _finalize
    server._read_data = _read_data
    objects._md5 = lambda content: "" if len(content) > _LARGE else _MD5(content)
    server.server.HTTPServer = http.server.ThreadingHTTPServer
    http.server.ThreadingHTTPServer.request_queue_size = 128  # others are told to come again, after a second
    if "--in-memory" in sys.argv:
        # For its own next start it writes down all objects after each change, which takes longer the more there are.
        emulated.Storage._write_config_to_file = lambda storage: None
    server.HANDLERS = tuple(
        (
            pattern,
            {method: _with_preconditions(_REPLACED.get(handler, handler)) for method, handler in handlers.items()},
        )
        for pattern, handlers in server.HANDLERS
    )
    emulator.main(sys.argv[1:])


if __name__ == "__main__":
    main()
