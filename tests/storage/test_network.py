"""Machines that are not there, and some that are."""

import contextlib
import socket

from maskmill.storage import network

PATIENCE = 30.0  # seconds: more than the machine may need when it is busy


def test_a_port_that_listens_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert network.connection_failure("127.0.0.1", server.getsockname()[1], PATIENCE) == ""


def test_a_port_that_is_closed_is_not_reached() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert network.connection_failure("127.0.0.1", bound.getsockname()[1], PATIENCE) == "Connection refused"


def test_a_host_that_never_answers_is_not_waited_for() -> None:
    with socket.socket() as deaf, contextlib.ExitStack() as stack:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(3):  # its backlog is full: a connection is neither accepted nor refused
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(deaf.getsockname())
        failure = network.connection_failure("127.0.0.1", deaf.getsockname()[1], 0.3)
    assert failure in ("no answer in 0.3 s", "timed out")


def test_names() -> None:
    assert network.lookup_failure("localhost", PATIENCE) == ""
    assert network.lookup_failure("no-such-host.invalid", PATIENCE) != ""
    assert network.lookup_failure("x" * 70 + ".invalid", PATIENCE) != ""
