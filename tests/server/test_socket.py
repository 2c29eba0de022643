"""The socket: what is in the log comes once, in order, whenever one asks for it; and commands are done once."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from hansard.events import assistant_chunk, tool_result, user_message
from hansard.events.codec import encode
from hansard.events.originals import wrap
from hansard.server import socket as socket_module
from hansard.server.protocol import Limits
from hansard.store import JsonlStore
from tests.proof import Figures, proves
from tests.server.served import Here, command, demo, eventually, served, words

pytestmark = pytest.mark.anyio


def lines(here: Here, session: str) -> list[dict]:
    """The log, as a client without originals should see it."""
    found = [json.loads(encode(event)) for event in here.store[session].read()]
    return [{name: value for name, value in event.items() if name not in ("original", "eol")} for event in found]


async def test_replay_then_live(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(1000)
        hello = await peer.until("hello")
        assert (hello["protocol"], hello["role"], hello["heartbeatMs"]) == (2, "participant", 15000)
        answer = await peer.subscribe(session)
        assert (answer["logId"], answer["head"]) == (here.store[session].head().log_id, 1002)
        assert (await peer.until("live"))["seq"] == 1002  # with a checkpoint
        here.store[session].append(words(10))
        assert await peer.events(1012) == lines(here, session)
        assert [message["type"] for message in peer.got].count("live") == 1


@proves("L-03", "Z6")
@pytest.mark.parametrize("seed", range(3))
async def test_no_gap_and_no_repeat_wherever_one_begins(seed: int, tmp_path: Path):
    """Subscribe at random moments, from random cursors, while somebody writes."""
    chance = random.Random(seed)
    async with served(tmp_path, Limits(per_session=100)) as here:
        session = here.session(300)
        log_id = here.store[session].head().log_id

        async def write() -> None:
            for number in range(150):
                here.store[session].append(words(chance.randrange(1, 20), number))
                await asyncio.sleep(chance.random() * 0.01)

        async def follow() -> tuple[int, list[int]]:
            await asyncio.sleep(chance.random())
            after = chance.randrange(0, here.store[session].head().seq + 1)
            async with here.socket() as peer:
                await peer.subscribe(session, after={"logId": log_id, "seq": after})
                await written
                found = await peer.events(here.store[session].head().seq)
                return after, [event["seq"] for event in found]

        written = asyncio.create_task(write())
        for after, seqs in await asyncio.gather(*(follow() for _ in range(12))):
            assert seqs == list(range(after + 1, here.store[session].head().seq + 1))


@proves("L-04")
async def test_one_who_falls_behind_is_fed_from_the_log(tmp_path: Path):
    """It has caught up, then takes nothing while more is written than is kept in memory, and then goes on."""
    async with served(tmp_path) as here:
        session = here.session(700)
        async with here.socket(max_queue=1) as peer:
            await peer.subscribe(session)
            await peer.until("live")
            for number in range(30):
                here.store[session].append([assistant_chunk(text=f"{number} {'x' * 2000}") for _ in range(300)])
                await asyncio.sleep(0.02)
            found = await peer.events(here.store[session].head().seq)
            assert [event["seq"] for event in found] == list(range(1, here.store[session].head().seq + 1))


@proves("L-01")
async def test_coming_back_at_any_cursor(tmp_path: Path):
    async with served(tmp_path) as here:
        session = here.session(600)
        log_id, expected = here.store[session].head().log_id, lines(here, session)
        seen: list[dict] = []
        while len(seen) < len(expected):  # a client that is cut off after each frame it gets
            async with here.socket() as peer:
                await peer.subscribe(session, after={"logId": log_id, "seq": seen[-1]["seq"] if seen else 0})
                seen += (await peer.until("events"))["events"][: 1 + len(seen) % 97]
        assert seen == expected


@proves("L-03")
async def test_a_filter_leaves_the_cursor_that_of_the_whole_log(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(50)
        here.store[session].append([user_message(text="one", author="human"), *words(3000), user_message(text="two", author="human")])
        await peer.subscribe(session, types=["user_message"])
        live = await peer.until("live")
        assert [event["payload"]["text"] for event in peer.events_of()] == ["one", "two"]
        assert live["seq"] == here.store[session].head().seq
        here.store[session].append(words(5))
        here.store[session].append([user_message(text="three", author="human")])
        await peer.events(here.store[session].head().seq)
        assert [event["payload"]["text"] for event in peer.events_of()] == ["one", "two", "three"]
        assert peer.cursor() == here.store[session].head().seq


async def test_originals_come_when_they_are_wanted(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session()
        event = user_message(text='a trap: "original":1', author="human")
        event.original, event.frame = wrap(b'{"said": "verbatim"}'), 1
        here.store[session].append([event])
        await peer.subscribe(session, "without")
        await peer.subscribe(session, "with", originals=True)
        await peer.until("live", id="with")
        assert "original" not in (await peer.events(2, "without"))[1]
        assert (await peer.events(2, "with"))[1]["original"] == {"said": "verbatim"}
        assert (await peer.events(2, "without"))[1]["payload"]["text"] == 'a trap: "original":1'


async def test_an_event_that_is_too_long_for_a_frame_is_announced(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer, here.http() as http:
        session = here.session(3)
        here.store[session].append([tool_result(tool_call_id="t", result="x" * 1_500_000), *words(3)])
        await peer.subscribe(session)
        await peer.until("live")
        events = peer.events_of()
        assert [event["seq"] for event in events] == list(range(1, 9))
        assert events[4]["large"]["bytes"] > 1_500_000 and "payload" not in events[4] and events[4]["type"] == "tool_result"
        whole = (await http.get(f"/api/sessions/{session}/events/5")).json()
        assert whole["payload"]["result"] == "x" * 1_500_000


async def test_no_frame_is_larger_than_the_limit(tmp_path: Path):
    async with served(tmp_path) as here, here.socket(max_size=2**20) as peer:
        session = here.session()
        here.store[session].append([tool_result(tool_call_id="t", result="x" * size) for size in (200_000, 900_000, 260_000, 1_040_000, 5)])
        await peer.subscribe(session)
        await peer.until("live")
        assert [event["seq"] for event in peer.events_of()] == [1, 2, 3, 4, 5, 6]
        assert ["large" in event for event in peer.events_of()] == [False] * 6


async def test_many_sessions_on_one_socket(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        sessions = [here.session(10 * number) for number in range(5)]
        for number, session in enumerate(sessions):
            await peer.say(type="subscribe", id=f"s{number}", session=session)
        for number, session in enumerate(sessions):
            assert await peer.events(10 * number + 1, f"s{number}") == lines(here, session)
        await peer.say(type="unsubscribe", id="s1")
        await peer.until("unsubscribed", id="s1")
        here.store[sessions[1]].append(words(1))
        here.store[sessions[2]].append(words(1))
        await peer.events(22, "s2")
        assert peer.cursor("s1") == 11


async def test_who_looks_is_told_to_who_wants_to_know(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as one:
        session, other = here.session(), here.session()
        await one.say(type="subscribe", id="a", session=session, presence=True)
        assert (await one.until("presence"))["people"] == [{"name": "participant", "role": "participant"}]
        async with here.socket("observer") as two:
            await two.subscribe(other)
            await two.subscribe(session, "x")
            await two.subscribe(session, "y")
            both = [{"name": "observer", "role": "observer"}, {"name": "participant", "role": "participant"}]
            assert (await one.until("presence"))["people"] == both
            assert (await one.until("presence"))["people"] == both  # subscribed twice, it is one person
        assert (await one.until("presence"))["people"] == both  # one of its two subscriptions is gone
        assert (await one.until("presence"))["people"] == both[1:]
        assert not any(message["type"] == "presence" for message in two.got)


async def test_what_another_process_writes_is_seen_and_not_touched(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        with JsonlStore(tmp_path) as another:
            session = another.create().session_id
            another[session].append(words(3))
            await peer.subscribe(session)
            assert len(await peer.events(4)) == 4
            another[session].append(words(3))
            assert len(await peer.events(7)) == 7
            told = await peer.command(session, "user_message", "c1", text="hello")
            assert (told["type"], told["code"]) == ("refused", "locked") and "process" in told["message"]
        assert (await peer.command(session, "session_lifecycle", "c2", subtype="renamed", title="free now"))["type"] == "done"


async def test_damage_is_shown_where_it_stands_and_once(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(3)
        here.store[session].release()
        with (tmp_path / session / "events.jsonl").open("ab") as file:
            file.write(b"{broken\n")
        await peer.subscribe(session)
        await peer.until("live")
        here.store[session].append(words(2))
        found = await peer.events(here.store[session].head().seq)
        assert [event.get("seq", 0) for event in found].count(0) == 1
        assert [event["seq"] for event in found if "seq" in event] == list(range(1, here.store[session].head().seq + 1))


async def test_damage_that_happens_meanwhile_is_shown_once(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(3)
        here.store[session].release()
        await peer.subscribe(session)
        await peer.until("live")
        with (tmp_path / session / "events.jsonl").open("ab") as file:
            file.write(b"{broken\n{more\n")
        while len(peer.events_of()) < 7:
            await peer.hear()
        assert [event["payload"]["reason"] for event in peer.events_of()[5:]] == ["invalid_json"] * 2
        here.store[session].append(words(2))
        found = await peer.events(here.store[session].head().seq)
        assert [event.get("seq", 0) for event in found].count(0) == 2
        assert [event["seq"] for event in found if "seq" in event] == list(range(1, here.store[session].head().seq + 1))


async def test_a_deleted_session_ends_its_subscriptions(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer, here.http() as http:
        session, other = here.session(3), here.session(3)
        await peer.subscribe(session, "gone")
        await peer.subscribe(other, "stays")
        await peer.until("live", id="stays")
        assert (await http.delete(f"/api/sessions/{session}")).status_code == 204
        assert (await peer.until("error", id="gone"))["code"] == "unknown_session"
        here.store[other].append(words(1))
        await peer.events(5, "stays")
        assert not (tmp_path / session).exists()


async def test_the_list_is_watched(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        first = here.session(2, title="first")
        await peer.say(type="watch")
        everything = await peer.until("sessions")
        assert everything["all"] and [one["id"] for one in everything["changed"]] == [first]
        second = here.session(0, title="second")
        news = await peer.until("sessions")
        assert [(one["id"], one["title"]) for one in news["changed"]] == [(second, "second")]
        assert (await peer.command(first, "session_lifecycle", "c1", subtype="archived"))["type"] == "done"
        news = await peer.until("sessions")
        assert [(one["id"], one["archived"]) for one in news["changed"]] == [(first, True)]
        here.store.delete(second)
        assert (await peer.until("sessions"))["removed"] == [second]


# ---------------------------------------------------------------------------------------------------------------------
# Commands


@proves("L-05")
async def test_a_command_is_done_once_however_often_it_is_given(tmp_path: Path, figure: Figures):
    async with served(tmp_path) as here, here.http() as http:
        session = await demo(http, tmp_path)
        seqs = []
        said = command("user_message", "the-same", text="say it once")
        async with here.socket() as peer:  # cut off before it hears the answer
            await peer.say(type="command", session=session, event=said)
            peer.socket.transport.abort()
        async with here.socket() as peer:  # twice without waiting
            for _ in range(2):
                await peer.say(type="command", session=session, event=said)
            seqs += [(await peer.until("done"))["seq"] for _ in range(2)]
        async with here.socket() as peer:
            seqs.append((await peer.command(session, "user_message", "the-same", text="say it once"))["seq"])
        answer = await http.post(f"/api/sessions/{session}/commands", json=said)
        seqs.append(answer.json()["seq"])
        assert len(seqs) == 4 and len(set(seqs)) == 1
        figure("times given", 5)
        await here.hub.get(session).idle()
        said = list(here.store[session].read(types=["user_message"]))
        assert [event.payload.text for event in said] == ["say it once"]
        assert said[0].seq in seqs and said[0].command_id == "the-same"


async def test_two_clients_and_one_agent(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http, here.socket() as one, here.socket() as two:
        session = (await http.post("/api/sessions", json={"agent": "demo", "options": {"cwd": str(tmp_path)}, "prompt": "run"})).json()[
            "id"
        ]
        for peer in (one, two):
            await peer.subscribe(session)
            while not any(event["type"] == "permission_request" for event in peer.events_of()):
                await peer.hear()
        asked = next(event["payload"] for event in one.events_of() if event["type"] == "permission_request")
        decision = {"requestId": asked["requestId"], "inputHash": asked["inputHash"], "decision": "allow"}
        assert (await two.command(session, "permission_response", "stale", **(decision | {"inputHash": "of another"})))["code"] == "changed"
        first, second = await asyncio.gather(
            one.command(session, "permission_response", "c1", **decision),
            two.command(session, "permission_response", "c2", **(decision | {"decision": "deny"})),
        )
        assert sorted([first["type"], second["type"]]) == ["done", "refused"]
        refused = first if first["type"] == "refused" else second
        assert refused["code"] == "answered"
        await here.hub.get(session).idle()
        head = here.store[session].head().seq
        assert await one.events(head) == await two.events(head) == lines(here, session)


async def test_the_queue_settings_and_the_switch(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http, here.socket() as peer:
        session = await demo(http, tmp_path, "count 5000")
        running = here.hub.get(session)
        await eventually(lambda: running.state.busy)
        await peer.command(session, "user_message", "q1", text="say one")
        await peer.command(session, "user_message", "q2", text="say two")
        first, second = running.state.queue
        assert (await peer.command(session, "queue_update", "e1", action="edited", itemId=first, text="say 1"))["type"] == "done"
        assert (await peer.command(session, "queue_update", "e1", action="edited", itemId=first, text="say 1"))["type"] == "done"
        assert (await peer.command(session, "queue_update", "x1", action="cancelled", itemId=second))["type"] == "done"
        assert (await peer.command(session, "queue_update", "x2", action="cancelled", itemId=second))["code"] == "not_found"
        assert (await peer.command(session, "interrupt", "i1", reason="user_cancel"))["type"] == "done"
        await running.idle()
        said = [event.payload.text for event in here.store[session].read(types=["user_message"])]
        assert said == ["count 5000", "say 1"]
        assert (await peer.command(session, "configuration_change", "s1", subtype="set_mode", modeId="auto"))["type"] == "done"
        for _ in range(2):  # a change that the agent refused is refused again
            refused = await peer.command(session, "configuration_change", "s2", subtype="set_model", model="nonsense")
            assert (refused["type"], refused["code"], refused["message"]) == ("refused", "refused", "there is no model nonsense")
        assert (await peer.command(session, "configuration_change", "s3", subtype="set_model"))["code"] == "bad_request"
        assert running.state.mode == "auto"
        assert (await peer.command(session, "agent_switch", "w1", toAgentId="demo"))["type"] == "done"
        switched = here.store[session].head().seq
        assert (await peer.command(session, "agent_switch", "w1", toAgentId="demo"))["type"] == "done"
        assert here.store[session].head().seq == switched
        assert (await peer.command(session, "session_lifecycle", "p1", subtype="closed"))["type"] == "done"
        assert here.hub.sessions == []
        assert (await peer.command(session, "user_message", "z1", text="say still here"))["type"] == "done"


async def test_a_command_that_is_wrong_is_refused(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(1)
        assert (await peer.command(session, "fly", "c1"))["code"] == "bad_request"
        assert (await peer.command(session, "user_message", "c2"))["code"] == "bad_request"
        assert (await peer.command(session, "user_message", "c3", text="x", sudo=True))["code"] == "bad_request"
        assert (await peer.command("nobody", "user_message", "c4", text="x"))["code"] == "unknown_session"
        assert (await peer.command("../x", "user_message", "c5", text="x"))["code"] == "unknown_session"
        assert (await peer.command(session, "user_message", "c6", text="x"))["code"] == "no_agent"
        await peer.say(type="command", session=session, event={"type": "user_message", "payload": {"text": "x"}})
        assert (await peer.until("refused", commandId=""))["code"] == "bad_request"
        await peer.say(type="command", session=session)
        assert (await peer.until("error"))["code"] == "bad_message"


# ---------------------------------------------------------------------------------------------------------------------
# Is anybody there?


@proves("L-07")
async def test_heartbeats_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket_module, "HEARTBEAT", 0.3)
    async with served(tmp_path, Limits(idle_seconds=0.2)) as here:
        async with here.socket() as peer:
            await peer.say(type="ping")
            await peer.until("pong")
            pings = 0
            while pings < 3:  # answered, it stays
                if json.loads(await peer.socket.recv())["type"] == "ping":
                    pings += 1
                    await peer.say(type="pong")
        monkeypatch.setattr(socket_module, "SILENCE", 0.3)
        async with here.socket() as peer:
            async with asyncio.timeout(15):
                with suppress(ConnectionClosed):
                    while True:
                        await peer.socket.recv()
            assert peer.socket.close_code == 4008
