"""A memory budget for tests in pytest: the fixture memory_budget. README.md explains it.

    def test_parse(memory_budget):
        with memory_budget(leaked="64K", count=1000):
            parse(text)

Numbers instead of limits, without a comparison of profiles: the fixture memory_totals.

    def test_parse(memory_totals):
        with memory_totals("parse") as totals:
            parse(text)
        assert totals.peak_bytes <= 64 << 10

pytest must run under `heapwise record`; otherwise tests with a budget are skipped. Keys are those of
`heapwise diff --max-increase`: peak, leaked, bytes, count … Both are those of the whole process.
"""

import contextlib
import ctypes
import gc
import os
import re
import subprocess

import pytest

_runtime = ctypes.CDLL(None)


def _profile():
    """The profile of this process, without .hwprof: it is mapped, shared."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if found := re.search(r" rw-s .*?(/.*)\.hwprof$", line):
                return found[1]
    return None


class _Dumps:
    """The first number that no file has, as the runtime chooses it."""

    def __init__(self, profile):
        self.profile, self.number = profile, 0

    def write(self):
        while True:
            self.number += 1
            name = f"{self.profile}.dump{self.number}.hwprof"
            if not os.path.exists(name):
                break
        if _runtime.heapwise_dump() != 0:
            pytest.fail("Heapwise could not write a dump")
        return name


@pytest.fixture(scope="session")
def _dumps():
    profile = _profile() if hasattr(_runtime, "heapwise_dump") else None
    if profile is None:
        pytest.skip("memory is measured under heapwise record only")
    return _Dumps(profile)


@pytest.fixture
def memory_budget(_dumps):
    @contextlib.contextmanager
    def budget(**limits):
        if not limits:
            raise TypeError("memory_budget() needs a limit, such as leaked='64K'")
        gc.collect()
        _runtime.heapwise_reset()
        before = _dumps.write()
        yield
        gc.collect()
        after = _dumps.write()
        command = [os.environ.get("HEAPWISE", "heapwise"), "diff", "--color=never", "--top=3", f"--sort={next(iter(limits))}"]
        command += [f"--max-increase={key}={value}" for key, value in limits.items()]
        environment = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "HEAPWISE_OPTIONS")}
        done = subprocess.run([*command, before, after], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode in (0, 1):  # otherwise the dumps are kept, to be looked at
            os.unlink(before)
            os.unlink(after)
        if done.returncode != 0:  # the limits and the places, without the totals before them
            pytest.fail(done.stdout[max(done.stdout.find("\nLimits\n"), 0) :], pytrace=False)

    return budget


class _Region(ctypes.Structure):  # struct heapwise_region of heapwise/heapwise.h
    _fields_ = [("hidden", ctypes.c_size_t * 2)]


class _Totals(ctypes.Structure):  # struct heapwise_totals
    _fields_ = [(name, ctypes.c_size_t) for name in ("allocations", "frees", "reallocations", "bytes")]
    _fields_ += [(name, ctypes.c_ssize_t) for name in ("live_blocks", "live_bytes")]
    _fields_ += [(name, ctypes.c_size_t) for name in ("peak_bytes", "measured")] + [("reserved", ctypes.c_size_t * 8)]


@pytest.fixture
def memory_totals(_dumps):
    @contextlib.contextmanager
    def region(name):
        region, totals = _Region(), _Totals()
        begin, end = _runtime.heapwise_region_begin, _runtime.heapwise_region_end
        arguments = ctypes.byref(region), name.encode(), 0  # HEAPWISE_PROCESS
        ends = ctypes.byref(region), ctypes.byref(totals)
        gc.collect()
        if begin(*arguments) != 0:
            pytest.skip("this mode does not measure regions")
        try:
            yield totals
            gc.collect()
        finally:
            end(*ends)

    return region
