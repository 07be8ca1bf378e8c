"""One holder at a time: races of real processes, killed and stopped holders, expiry."""

import contextlib
import dataclasses
import functools
import json
import os
import signal
import socket
import threading
import time

import pytest
from release_runs import roots as release_roots
from release_runs.roots import name_of

from maskmill.errors import RunFailedError
from maskmill.releases import locks
from maskmill.releases.names import state_path
from maskmill.storage import conditional

pytest_plugins = ("release_runs.fixtures",)

NAME = name_of("2026-11-01")


PATH_OF = functools.partial(state_path, name=NAME, what="lock")
ELSEWHERE = "another-boot pid:[1] 17 5"  # a process of another machine


def held_by(root: str) -> locks.Holder:
    """What the lock's file says."""
    holder, _ = locks.read_holder(PATH_OF(root))
    assert holder is not None
    return holder


def dead_process() -> str:
    """A process of this machine that has ended: its number has gone to another one."""
    return locks.new_holder("", 1).process.rpartition(" ")[0] + " 1"


def test_a_process_that_this_machine_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc may show no processes of other users (hidepid), and they cannot be signalled."""
    me, process_of = locks.new_holder("someone", 100), locks._process_of
    assert not me.is_dead
    holder = dataclasses.replace(me, process=" ".join([*me.process.split()[:2], "1", "5"]))
    assert holder.is_dead
    monkeypatch.setattr(locks, "_process_of", lambda pid: process_of(pid) if pid == os.getpid() else "")
    assert not holder.is_dead

    def kill(pid: int, number: int) -> None:
        raise answer

    monkeypatch.setattr(os, "kill", kill)
    answer: OSError = PermissionError()
    assert not holder.is_dead
    answer = ProcessLookupError()
    assert holder.is_dead


def test_a_second_holder_is_told_who_has_it(root: str) -> None:
    with locks.hold(root, NAME) as lock:
        lock.check()
        with pytest.raises(locks.LockedError) as raised, locks.hold(root, NAME, owner="second"):
            pass
    me = f"@{socket.gethostname()}:{os.getpid()}"
    assert me in str(raised.value)
    message = str(raised.value)
    assert message.startswith(f"The lock of release {NAME} is held by ")
    assert f"{me} since 20" in message
    assert "give --release.wait=MINUTES." in message
    assert message.count(". ") == 0
    with locks.hold(root, NAME):  # it was released
        assert locks.holder_of(root, NAME) is not None
    assert locks.holder_of(root, NAME) is None
    assert release_roots.below(root) == []


def test_releases_do_not_lock_each_other_and_an_error_ends_a_lock(root: str) -> None:
    with pytest.raises(ZeroDivisionError), locks.hold(root, NAME), locks.hold(root, name_of("2026-12-01")):
        raise ZeroDivisionError
    assert locks.holder_of(root, NAME) is None


def test_who_waits_gets_it(root: str) -> None:
    told: list[str] = []
    is_told = threading.Event()

    def say(line: str) -> None:
        told.append(line)
        is_told.set()

    def wait() -> None:
        with locks.hold(root, NAME, owner="second", wait=100, say=say):
            told.append("taken")

    with locks.hold(root, NAME):
        thread = threading.Thread(target=wait)
        thread.start()
        assert is_told.wait(100)
    thread.join(100)
    assert len(told) == 2
    assert "; waiting up to 100 s" in told[0]
    assert told[1] == "taken"


def test_the_same_named_owner_takes_over(root: str) -> None:
    with locks.hold(root, NAME, owner="run 1 text") as first:
        with locks.hold(root, NAME, owner="run 1 text") as second:
            with pytest.raises(RunFailedError, match="was taken over from this process"):
                first.check()
            second.check()
        # The second one's lock is gone, and the first one has not got it back.
        with pytest.raises(RunFailedError, match="was taken over"):
            first.check()
        third = locks.hold(root, NAME, owner="run 1 text")
        lock = third.__enter__()
    lock.check()  # the first one has not released it
    assert held_by(root).token == lock.holder.token
    third.__exit__(None, None, None)


def test_without_a_name_an_owner_takes_over_nothing(root: str) -> None:
    for owner in ("", locks.default_owner()):
        with locks.hold(root, NAME), pytest.raises(locks.LockedError), locks.hold(root, NAME, owner=owner):
            pass


WHOLE = json.loads(locks.new_holder("me", 100_000).encode())  # longer than all tests take


@pytest.mark.parametrize(
    ("content", "is_free"),
    [
        ({"process": ELSEWHERE}, False),
        ({"process": ""}, False),
        ({"process": ELSEWHERE, "expires": time.time() - 1}, True),
        ({"process": dead_process()}, True),
        *[(damaged, True) for damaged in (b"", b"{}", b"[1]", b"\xff", b'{"owner": "me"}', {"expires": "never"})],
    ],
)
def test_a_lock_of_another_counts_while_it_may_live(
    root: str, content: dict[str, object] | bytes, is_free: bool
) -> None:
    written = content if isinstance(content, bytes) else json.dumps(WHOLE | content).encode()
    conditional.write(PATH_OF(root), written, expected=None)
    assert (locks.holder_of(root, NAME) is None) == is_free
    if not is_free:
        with pytest.raises(locks.LockedError, match="is held by me since"), locks.hold(root, NAME):
            pass
    with locks.hold(root, NAME, owner="" if is_free else "me") as lock:  # or a step of the same run
        lock.check()


def test_a_lock_that_was_deleted_is_lost(root: str) -> None:
    with locks.hold(root, NAME) as lock:
        path = PATH_OF(root)
        found = conditional.read(path)
        assert found is not None
        conditional.delete(path, expected=found[1])
        with pytest.raises(RunFailedError, match="or deleted"):
            lock.check()


def test_a_holder_renews(root: str) -> None:
    with locks.hold(root, NAME, lifetime=6) as lock:
        first = lock.holder.expires
        while held_by(root).expires == first:
            time.sleep(0.05)
        assert held_by(root).expires > first
        lock.check()


def test_a_lock_that_cannot_be_renewed_is_lost_when_it_has_expired(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: str, content: bytes, *, expected: str | None) -> str:
        raise RunFailedError("the store does not answer")

    with locks.hold(root, NAME, lifetime=0.4) as lock:
        monkeypatch.setattr(conditional, "write", write)
        problem = ""
        while "could not be kept" not in problem:  # before, it may still be in time
            with pytest.raises(RunFailedError, match="the store does not answer") as raised:
                lock.check()
            problem = str(raised.value)
            time.sleep(0.05)
        assert not lock.holder.is_live
        monkeypatch.undo()
        with pytest.raises(RunFailedError, match="could not be kept"):  # somebody else may have had it since
            lock.check()


HOLD = """
import sys, time
from maskmill.errors import RunFailedError
from maskmill.releases import locks
from maskmill.releases.names import ReleaseName
root, name, lifetime = sys.argv[1], ReleaseName.parse(sys.argv[2]), float(sys.argv[3])
with locks.hold(root, name, owner="holder", lifetime=lifetime) as lock:
    print("held", flush=True)
    sys.stdin.readline()
    try:
        lock.check()
        print("still held", flush=True)
    except RunFailedError as error:
        print(error, flush=True)
"""


@pytest.mark.builds
def test_the_lock_of_a_killed_process_is_free_at_once(root: str) -> None:
    process = release_roots.start(HOLD, root, str(NAME), "1000")
    assert release_roots.line_of(process) == "held"
    with pytest.raises(locks.LockedError, match="held by holder since"), locks.hold(root, NAME):
        pass
    release_roots.end(process)
    with locks.hold(root, NAME):
        pass


@pytest.mark.builds
def test_a_stopped_process_loses_its_lock_and_learns_it(root: str) -> None:
    process = release_roots.start(HOLD, root, str(NAME), "3")
    assert release_roots.line_of(process) == "held"
    process.send_signal(signal.SIGSTOP)
    with locks.hold(root, NAME, wait=100) as lock:
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate("\n")
        assert "was taken over from this process (holder)" in output
        lock.check()  # the first one has not touched it
    assert process.returncode == 0


ALONE = """
import os, sys, time
from maskmill.releases import locks
from maskmill.releases.names import ReleaseName
root, name, sign, times = sys.argv[1], ReleaseName.parse(sys.argv[2]), sys.argv[3], int(sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(times):
    with locks.hold(root, name, wait=500) as lock:
        os.close(os.open(sign, os.O_CREAT | os.O_EXCL))  # fails if another one is inside
        time.sleep(0.01)
        os.unlink(sign)
        lock.check()
"""


@pytest.mark.builds
def test_processes_that_race_are_never_inside_together(root: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    sign = tmp_path_factory.mktemp("sign") / "inside"
    release_roots.race([(ALONE, root, str(NAME), str(sign), "8")] * 4)


@pytest.mark.parametrize("dead", [False, True])
def test_two_that_come_at_any_moment_never_both_have_it(root: str, dead: bool) -> None:
    """Before each operation of the one, another one comes and tries."""
    inside, taken, refused = [False], [], []

    def come(number: int) -> None:
        try:
            with locks.hold(root, NAME, owner="other"):
                assert not inside[0]
                taken.append(number)
        except locks.LockedError:
            refused.append(number)

    if dead:
        conditional.write(PATH_OF(root), json.dumps(WHOLE | {"process": dead_process()}).encode(), expected=None)
    with release_roots.before_operations(come), locks.hold(root, NAME) as lock:
        inside[0] = True
        lock.check()
        inside[0] = False
    assert taken
    assert refused


@pytest.mark.parametrize("moment", [0, 1])
def test_one_that_stays_is_seen(root: str, moment: int) -> None:
    """Another one takes the lock before this one reads, or between its reading and its writing, and keeps it."""
    with contextlib.ExitStack() as stack:

        def come(number: int) -> None:
            if number == moment:
                stack.enter_context(locks.hold(root, NAME, owner="other"))

        with pytest.raises(locks.LockedError), release_roots.before_operations(come), locks.hold(root, NAME):
            pass
        assert held_by(root).owner == "other"
