"""Other processes: they answer, and end with the one that made them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from lading.errors import ConfigError
from lading.workers.child import Start, start

PARENT = """
import sys, time
from operator import add
from lading.workers.child import start
children = start(1, add, 3, how=sys.argv[1])
assert [child.ask(number) for number, child in enumerate(children)] == [1, 2, 3]
print(*(child._process.pid for child in children), flush=True)
time.sleep(600)
"""


def alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize("how", ["copy", "new"])
def test_children_end_with_their_parent(how: Start) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, how], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        assert len(children) == 3
        assert all(map(alive, children))
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    patience = time.monotonic() + 30
    while any(map(alive, children)) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not any(map(alive, children))


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be handed to another process"):
        start(lambda: None, pow, 1, how="new")
