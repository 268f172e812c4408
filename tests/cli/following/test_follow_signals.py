"""Whoever asks for the end is heard while nothing is done, and waits while something is."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from likely.cli.following.follow_signals import Stops

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")


@pytest.fixture(autouse=True)
def interrupts():
    """Whoever starts tests in the background of a shell has interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def call(number: int) -> bytes:
    os.kill(os.getpid(), number)
    return b"nobody gets this"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_reader_that_waits_is_called_away(number):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as end, Stops() as stops:
        stops.listen(lambda: call(number))
    assert end.value.code == 128 + number and signal.getsignal(number) is before
    with pytest.raises(KeyboardInterrupt), Stops() as stops:
        stops.listen(lambda: call(signal.SIGINT))


def test_work_is_finished_first_and_a_second_call_is_not_heard_at_all():
    with pytest.raises(SystemExit), Stops() as stops:
        assert stops.listen(lambda: b"a line") == b"a line"
        call(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # a second one kills
        assert stops.called == signal.SIGTERM
        stops.listen(lambda: pytest.fail("nothing more is read"))
    with Stops() as stops:
        stops.leave()  # nobody called


def test_what_is_ignored_stays_so_and_other_threads_change_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stops() as stops:
            assert stops.listen(lambda: call(signal.SIGHUP)) == b"nobody gets this"
    finally:
        signal.signal(signal.SIGHUP, before)
    found: list[dict[int, object]] = []

    def elsewhere() -> None:
        with Stops() as stops:
            found.append(stops.before)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [{}]
