"""Kills processes that bring the catalog up to date, at random; in between, sessions grow, come and go.

Arguments: a folder to work in, how many kills, a seed. Prints a JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from itertools import count
from pathlib import Path

from hansard.events import Event, Usage, assistant_done, turn_end, turn_start, usage, user_message
from hansard.store import JsonlStore
from hansard.store.files import catalog
from tests.store.catalogs import rows

LONGEST_SECONDS = 0.05
KILLS_BETWEEN_LOOKS = 10


def talk(chance: random.Random) -> list[Event]:
    """A turn with words that others have and words of its own."""
    words = " ".join(f"w{chance.randrange(1000)}" for _ in range(chance.choice((3, 30, 3000))))
    used = usage(scope="message", usage=Usage(input_tokens=chance.randrange(100), output_tokens=1))
    used.response_id = f"r{chance.randrange(10**9)}"
    return [turn_start(trigger="user"), user_message(text=words), assistant_done(text=words[::-1]), used, turn_end(status="completed")]


def change(root: Path, chance: random.Random) -> None:
    """Lets sessions grow; deletes one now and then."""
    with JsonlStore(root) as store:
        for name in {f"s{chance.randrange(12)}" for _ in range(3)}:
            store[name].append([event for _ in range(chance.randrange(1, 8)) for event in talk(chance)])
        if chance.random() < 0.1:
            store.delete(chance.choice(store.sessions()).id)


def main(work: Path, kills: int, seed: int) -> dict[str, int]:
    catalog.MAX_BLOCKS = 2
    chance = random.Random(seed)
    root = work / "store"
    result: dict[str, int] = dict.fromkeys(("kills", "looks", "different"), 0)
    change(root, chance)
    JsonlStore(root).update_index()
    for attempt in count():
        if result["kills"] >= kills and result["looks"]:
            return result
        child = os.fork()
        if child == 0:
            for _ in range(3):
                change(root, random.Random(seed * 10**6 + attempt))
                JsonlStore(root).update_index()
            os._exit(0)
        time.sleep(chance.uniform(0, LONGEST_SECONDS))
        os.kill(child, signal.SIGKILL)
        result["kills"] += not os.WIFEXITED(os.waitpid(child, 0)[1])
        if attempt % KILLS_BETWEEN_LOOKS == KILLS_BETWEEN_LOOKS - 1:
            result["looks"] += 1
            result["different"] += not is_as_new(root)
    raise AssertionError("it never ends")


def is_as_new(root: Path) -> bool:
    """Whether the catalog, repaired, has the rows of one that is built from the logs."""
    store = JsonlStore(root)
    store.update_index()
    repaired = rows(store)
    store.catalog.database.drop()
    store.update_index()
    return repaired == rows(store)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
