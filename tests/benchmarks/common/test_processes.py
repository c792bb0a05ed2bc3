"""What a process and its descendants used, seen from outside."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common.processes import family, processor_s

BUSY = """
import time
while time.process_time() < 0.3:
    pass
"""
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BUSY!r}])
print("one has ended", flush=True)
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
child.communicate(b"\\n")
"""


def test_descendants_count_alive_and_after_their_end() -> None:
    command = [sys.executable, "-c", PARENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        assert parent.stdout.readline() == "one has ended\n"
        assert processor_s(parent.pid) >= 0.3
        child = int(parent.stdout.readline())
        assert family(parent.pid) == {parent.pid, child}
        parent.stdin.write("\n")
    assert parent.returncode == 0
