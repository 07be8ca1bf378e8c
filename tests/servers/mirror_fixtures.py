"""What the tests of mirrors share: a mirror, and a client of it that is less patient than the command's."""

from collections.abc import Iterator

import pytest

from maskmill.mirrors.client import MirrorClient
from servers import mirror_server
from servers.mirror_server import Mirror


@pytest.fixture(name="mirror")
def _mirror() -> Iterator[Mirror]:
    with mirror_server.serve() as mirror:
        yield mirror


@pytest.fixture(name="client")
def _client() -> Iterator[MirrorClient]:
    client = MirrorClient("data@example.org", "1.2.3", patience=10, silence=5)
    yield client
    client.close()
