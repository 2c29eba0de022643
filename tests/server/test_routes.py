"""Each line of the table of docs/protocol.md, asked over a real connection."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hansard.agents.base import Options
from hansard.errors import Refused, StoreUnavailable
from hansard.events import session_init, tool_call, turn_start, user_message
from hansard.events.originals import wrap
from hansard.events.state import State
from hansard.projections import FORMATS
from hansard.projections.formats.standard_messages import StandardMessages
from hansard.server.responses import BEFORE_STATUS
from hansard.server.search import MAX_MATCHES
from hansard.server.services import EXPORTS
from hansard.store import Record
from hansard.store.files.store import FolderLog
from tests.driving.stage import DOT
from tests.server.readers import StreamReader
from tests.server.served import command, demo, eventually, process, served, words

pytestmark = pytest.mark.anyio


async def test_about_the_server(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        about = (await http.get("/api")).json()
        assert about["protocol"] == 2 and about["role"] == "participant" and about["limits"]["body"] == 10_000_000
        agents = {agent["name"]: agent for agent in (await http.get("/api/agents")).json()["agents"]}
        assert agents["demo"]["installed"] and agents["demo"]["can"]["interrupt"]
        assert all(agent["installed"] or agent["problem"] for agent in agents.values())


async def test_how_the_server_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with served(tmp_path / "store") as here, here.http() as http:
        assert (await http.get("/api/health")).json()["agents"] == 0
        session = await demo(http, tmp_path)
        await here.hub.get(session).send("run")
        await here.hub.get(session).until(lambda past: bool(past.asked))
        well = (await http.get("/api/health")).json()
        assert {name: well[name] for name in ("store", "sessions", "agents", "waiting", "queued")} == {
            "store": "ok",
            **dict.fromkeys(("sessions", "agents", "waiting"), 1),
            "queued": 0,
        }
        told = (await http.get("/api/metrics")).text
        assert "\nhansard_agents 1\n" in told
        assert "hansard_store_up 1\n" in told

        def away() -> list[str]:
            raise StoreUnavailable("the database does not answer")

        monkeypatch.setattr(here.store, "abandoned", away)
        ill = await http.get("/api/health")
        assert (ill.status_code, ill.json()["store"], "does not answer" in ill.json()["problem"]) == (503, "away", True)
        assert "hansard_store_up 0\n" in (await http.get("/api/metrics")).text


async def test_a_session_is_found_by_the_id_of_its_agent(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        names = [here.session(number) for number in (1, 2, 3)]
        for name, own in zip(names, ("own-1", "own-2", "own-2"), strict=True):
            await asyncio.to_thread(here.store[name].append, [session_init(agent_id="claude", provider_session_id=own)])
        assert (await http.get("/api/sessions/own-1")).json()["id"] == names[0]
        assert (await http.get("/api/sessions/own-3")).status_code == 404
        ambiguous = await http.get("/api/sessions/own-2")
        assert ambiguous.status_code == 400 and names[1] in ambiguous.text and names[2] in ambiguous.text


async def test_the_list_of_sessions(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        names = [here.session(number, title=f"Title {number} {'even' if number % 2 == 0 else 'odd'}") for number in range(1, 6)]
        found = (await http.get("/api/sessions")).json()
        assert sorted(one["id"] for one in found["sessions"]) == sorted(names) and "next" not in found
        assert [one["title"] for one in (await http.get("/api/sessions?q=EVEN+title")).json()["sessions"]] == [
            "Title 4 even",
            "Title 2 even",
        ]
        pages = [(await http.get("/api/sessions?limit=2")).json()]
        while "next" in pages[-1]:
            pages.append((await http.get(f"/api/sessions?limit=2&before={pages[-1]['next']}")).json())
        assert [len(page["sessions"]) for page in pages] == [2, 2, 1]
        assert [one["id"] for page in pages for one in page["sessions"]] == [one["id"] for one in found["sessions"]]
        for wrong in ("limit=0", "limit=x", "limit=1001", "archived=maybe"):
            assert (await http.get(f"/api/sessions?{wrong}")).status_code == 400


async def test_a_session_is_made_once(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        wanted = {"agent": "demo", "options": {"cwd": str(tmp_path)}, "title": "A title", "prompt": "say hi", "commandId": "new-1"}
        first, second = await http.post("/api/sessions", json=wanted), await http.post("/api/sessions", json=wanted)
        assert first.status_code == second.status_code == 201
        assert first.json()["id"] == second.json()["id"] and first.json()["title"] == "A title"
        session = here.hub.get(first.json()["id"])
        await eventually(lambda: session.state.messages >= 2)
        assert len(here.store.sessions()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"agent": "nobody"},
        {"agent": 7},
        {"agent": "demo", "options": {"cwd": "/no/such/folder"}},
        {"agent": "demo", "options": {"program": "/bin/sh"}},
        {"agent": "demo", "options": {"arguments": ["-c", "id"]}},
        {"agent": "demo", "options": {"env": {"LD_PRELOAD": "/x.so"}}},
        {"agent": "demo", "options": {"mcpServers": {"x": {"command": "id"}}}},
        {"agent": "demo", "options": {"services": ["terminal"]}},
        {"agent": "demo", "title": ""},
        {"agent": "demo", "sudo": True},
        [],
    ],
    ids=json.dumps,
)
async def test_a_client_cannot_say_what_program_runs(wrong: object, tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        answer = await http.post("/api/sessions", json=wrong)
        assert answer.status_code == 400 and answer.json()["error"]["code"] == "bad_request"
        assert here.store.sessions() == []


async def test_an_agent_that_is_not_here_is_refused_with_what_to_do(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        missing = [agent for agent in (await http.get("/api/agents")).json()["agents"] if not agent["installed"]]
        answer = await http.post("/api/sessions", json={"agent": missing[0]["name"], "options": {"cwd": str(tmp_path)}})
        assert answer.status_code == 502 and answer.json()["error"]["code"] == "agent_not_started"
        assert here.store.sessions() == []


async def test_renamed_and_put_away(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session(3, title="old")
        assert (await http.patch(f"/api/sessions/{session}", json={"title": "new"})).json()["title"] == "new"
        assert (await http.patch(f"/api/sessions/{session}", json={"archived": True})).json()["archived"]
        assert (await http.get("/api/sessions")).json()["sessions"] == []
        assert [one["id"] for one in (await http.get("/api/sessions?archived=true")).json()["sessions"]] == [session]
        for _ in range(5):  # many checkpoints and much else later it is still so
            here.store[session].append(words(1500))
        one = (await http.get(f"/api/sessions/{session}")).json()
        assert (one["title"], one["archived"]) == ("new", True)
        here.store[session].release()
        here.store[session].append(words(1500))  # also after another writer took the log up
        one = (await http.get(f"/api/sessions/{session}")).json()
        assert (one["title"], one["archived"]) == ("new", True)
        assert not (await http.patch(f"/api/sessions/{session}", json={"archived": False})).json().get("archived", False)
        assert (await http.patch("/api/sessions/nobody", json={"title": "x"})).status_code == 404
        assert (await http.patch(f"/api/sessions/{session}", json={"agent": "x"})).status_code == 400
        assert here.store[session].verify() == []


async def test_deleted_with_everything(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        session = await demo(http, tmp_path, "count 5000")
        running = here.hub.get(session)
        await eventually(lambda: running.running)
        assert (await http.delete(f"/api/sessions/{session}")).status_code == 204
        assert not (tmp_path / "store" / session).exists() and not running.running
        assert (await http.get(f"/api/sessions/{session}")).status_code == 404
        assert (await http.delete(f"/api/sessions/{session}")).status_code == 404


async def test_whoever_is_still_at_it_does_not_bring_a_deleted_session_back(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        session = here.hub.get(await demo(http, tmp_path))
        assert (await http.delete(f"/api/sessions/{session.id}")).status_code == 204
        with pytest.raises(Refused, match="closed"):
            await session.send("say too late")
        assert not (tmp_path / "store" / session.id).exists()


async def test_a_fork_has_the_events_up_to_there_and_goes_on(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        session = await demo(http, tmp_path, "say first")
        parent = here.hub.get(session)
        await eventually(lambda: parent.state.turn_count == 1 and not parent.state.busy)
        at = parent.state.seq
        blob = (await http.post(f"/api/sessions/{session}/uploads", json={"data": DOT})).json()["blob"]
        await parent.send("say second")
        await parent.idle()
        made = (await http.post(f"/api/sessions/{session}/fork", json={"seq": at, "title": "another way"})).json()
        assert (made["parentSessionId"], made["title"]) == (session, "another way")
        said = [event.payload.text for event in here.store[made["id"]].read(types=["user_message"])]
        assert said == ["say first"]
        assert next(iter(here.store[made["id"]].read())).payload.parent_seq == at
        ids = {event.id for event in here.store[session].read()}
        assert {event.id for event in here.store[made["id"]].read(types=["user_message", "assistant_done"])} <= ids
        said = command("user_message", "c", text="say third")
        assert (await http.post(f"/api/sessions/{made['id']}/commands", json=said)).status_code == 200
        await here.hub.get(made["id"]).idle()
        assert [event.payload.text for event in here.store[made["id"]].read(types=["user_message"])][-1] == "say third"
        assert [event.payload.text for event in here.store[session].read(types=["user_message"])] == ["say first", "say second"]
        assert (await http.post(f"/api/sessions/{session}/fork", json={"seq": 10_000})).status_code == 409
        assert (await http.post(f"/api/sessions/{session}/fork", json={"seq": 0})).status_code == 400
        assert here.store[made["id"]].verify() == []
        assert blob


async def test_a_fork_whose_agent_does_not_start_is_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with served(tmp_path) as here, here.http() as http:
        session = here.session(format="openai-chat")
        await (await here.hub.open(session)).switch("openai-chat", Options(model="m", base_url="http://127.0.0.1:9"))
        made = await http.post(f"/api/sessions/{session}/fork", json={})
        assert made.status_code == 201
        sent = await http.post(f"/api/sessions/{made.json()['id']}/commands", json=command("user_message", "c", text="hello"))
        assert (sent.status_code, sent.json()["error"]["code"]) == (409, "no_agent")


async def test_a_fork_takes_its_blobs_along_and_closes_what_was_open(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session(format="claude-stream-json")
        large = user_message(text="x", author="human")
        large.original, large.frame, large.turn_id = wrap(b'{"x":"' + b"y" * 2_000_000 + b'"}'), 1, "t1"
        begun = turn_start(trigger="user")
        begun.turn_id = "t1"
        here.store[session].append([begun, large, tool_call(tool_call_id="c1", tool_name="Bash", args={})])
        made = (await http.post(f"/api/sessions/{session}/fork", json={})).json()["id"]
        types = [event.type for event in here.store[made].read()]
        assert types[:4] == ["session_lifecycle", "turn_start", "user_message", "tool_call"]
        assert "turn_end" in types and State().phase == "idle"
        copied = next(event for event in here.store[made].read() if event.type == "user_message")
        assert here.store[made].original(copied) == b'{"x":"' + b"y" * 2_000_000 + b'"}'
        assert here.store[made].verify() == []


async def test_events_after_a_cursor(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session(250)
        log_id = here.store[session].head().log_id
        seen: list[int] = []
        page = {"to": 0, "head": 1, "logId": log_id}
        while page["to"] < page["head"]:
            page = (await http.get(f"/api/sessions/{session}/events?logId={log_id}&after={page['to']}&limit=100")).json()
            seen += [event["seq"] for event in page["events"]]
        assert seen == list(range(1, 252))
        filtered = (await http.get(f"/api/sessions/{session}/events?types=session_lifecycle")).json()
        assert [event["seq"] for event in filtered["events"]] == [1] and filtered["to"] == 251
        assert (await http.get(f"/api/sessions/{session}/events?logId=other&after=3")).status_code == 409
        assert (await http.get(f"/api/sessions/{session}/events?logId={log_id}&after=999")).status_code == 409
        assert (await http.get(f"/api/sessions/{session}/events?after=3")).status_code == 400
        assert (await http.get(f"/api/sessions/{session}/events?logId={log_id}&after=x")).json()["error"]["code"] == "unknown_cursor"


async def test_one_event_and_its_original(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session()
        first, second = user_message(text="a", author="human"), user_message(text="b", author="human")
        first.frame = second.frame = 7
        first.original = wrap(b'{"spelled": 1.50, "so": true}')
        here.store[session].append([first, second, *words(1)])
        whole = (await http.get(f"/api/sessions/{session}/events/2")).text
        assert '{"spelled": 1.50, "so": true}' in whole
        for seq in (2, 3):
            answer = await http.get(f"/api/sessions/{session}/events/{seq}/original")
            assert answer.content == b'{"spelled": 1.50, "so": true}'
            assert answer.headers["content-disposition"].startswith("attachment") and "sandbox" in answer.headers["content-security-policy"]
        assert (await http.get(f"/api/sessions/{session}/events/4/original")).status_code == 404
        for seq in ("5", "0", "x", "-1", "9" * 30):
            assert (await http.get(f"/api/sessions/{session}/events/{seq}")).status_code == 404


async def test_other_forms(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        session = await demo(http, tmp_path, "think and run")
        running = here.hub.get(session)
        await eventually(lambda: bool(running.state.asked))
        live = (await http.get(f"/api/sessions/{session}/state")).json()
        assert live["phase"] == "waiting" and len(live["pendingPermissions"]) == 1
        await running.stop()
        await here.hub.close(session)
        events = list(here.store[session].read())
        state = (await http.get(f"/api/sessions/{session}/state")).json()
        assert state["seq"] == events[-1].seq and state["phase"] == "closed"
        assert (await http.get(f"/api/sessions/{session}/summary")).json()["title"] == "think and run"
        messages = (await http.get(f"/api/sessions/{session}/messages")).json()
        assert [message["role"] for message in messages] == [
            message["role"] for message in json.loads(json.dumps([*map(_plain, _messages(events))]))
        ]
        for form in FORMATS:
            answer = await http.get(f"/api/sessions/{session}/export?to={form}")
            assert answer.status_code == 200 and answer.content, form
            assert "attachment" in answer.headers["content-disposition"]
        assert (await http.get(f"/api/sessions/{session}/export?to=nonsense")).status_code == 400
        assert (await http.get(f"/api/sessions/{session}/export")).status_code == 400


@pytest.mark.parametrize("form", ["native", "markdown", "html", "summary"])
async def test_an_export_that_fails_has_the_status_of_a_failure(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def read_blocks(log: FolderLog, size: int) -> Any:
        yield from [([user_message(text="hi")], 10)] * 3
        raise OSError("the disk is gone")

    monkeypatch.setattr(FolderLog, "read_blocks", read_blocks)
    monkeypatch.setattr(FolderLog, "conversation_blocks", read_blocks)
    async with served(tmp_path / "store") as here, here.http() as http:
        answer = await http.get(f"/api/sessions/{here.session(3)}/export?to={form}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "store")


async def test_exports_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    at_once, most = 0, 0

    def export(*_: object) -> Iterator[bytes]:
        nonlocal at_once, most
        for _part in range(3):
            at_once, most = at_once + 1, max(most, at_once + 1)
            time.sleep(0.01)
            at_once -= 1
            yield b"x" * BEFORE_STATUS

    monkeypatch.setattr("hansard.server.routes.export_session", export)
    async with served(tmp_path / "store") as here, here.http() as http:
        session = here.session(3)
        answers = await asyncio.gather(*(http.get(f"/api/sessions/{session}/export?to=markdown") for _ in range(8)))
        assert [len(answer.content) for answer in answers] == [3 * BEFORE_STATUS] * 8
        assert most == EXPORTS


def _messages(events):
    made = StandardMessages()
    for event in events:
        yield from made.feed(event)
    yield from made.finish()


def _plain(message):
    import msgspec

    return json.loads(msgspec.json.encode(message))


async def test_blobs_are_downloads_and_only_pictures_of_dots_are_shown(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session()
        for data, kind in [
            (base64.b64decode(DOT), "image/png"),
            (b"GIF89a....", "image/gif"),
            (b"\xff\xd8\xff\xe0....", "image/jpeg"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", None),
            (b"<!doctype html><script>x()</script>", None),
            (b"%PDF-1.4", None),
        ]:
            given = {"data": base64.b64encode(data).decode(), "mediaType": "text/html", "name": "x.html"}
            made = (await http.post(f"/api/sessions/{session}/uploads", json=given)).json()
            answer = await http.get(f"/api/sessions/{session}/blobs/{made['blob']}")
            assert answer.content == data
            assert answer.headers["content-type"] == (kind or "application/octet-stream")
            assert answer.headers.get("content-disposition", "").startswith("attachment") is (kind is None)
            assert "sandbox" in answer.headers["content-security-policy"]
        assert (await http.get(f"/api/sessions/{session}/blobs/{'0' * 64}")).status_code == 404
        assert (await http.get(f"/api/sessions/{session}/blobs/events.jsonl")).status_code == 404
        assert (await http.post(f"/api/sessions/{session}/uploads", json={"data": "no base64!"})).status_code == 400
        assert (await http.post("/api/sessions/nobody/uploads", json={"data": ""})).status_code == 404


async def test_a_picture_goes_with_a_message(tmp_path: Path):
    async with served(tmp_path / "store") as here, here.http() as http:
        session = await demo(http, tmp_path)
        blob = (await http.post(f"/api/sessions/{session}/uploads", json={"data": DOT, "mediaType": "image/png"})).json()["blob"]
        content = [{"type": "text", "text": "say what is this"}, {"type": "image", "blob": blob, "mediaType": "image/png"}]
        said = command("user_message", "c", text="say what is this", content=content)
        assert (await http.post(f"/api/sessions/{session}/commands", json=said)).status_code == 200
        await here.hub.get(session).idle()
        said = next(event for event in here.store[session].read(types=["user_message"]))
        assert DOT in (await http.get(f"/api/sessions/{session}/events/{said.seq}/original")).text


async def test_search(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session(title="About fish")
        here.store[session].append(
            [
                user_message(text="Where does the TROUT swim?", author="human"),
                tool_call(tool_call_id="c", tool_name="Bash", args={"command": "ls /trout"}),
            ],
        )
        other = here.session()
        here.store[other].append([user_message(text="Größe der Forelle", author="human")])
        answer = await http.get("/api/search?q=trout")
        assert answer.headers["content-type"] == "application/x-ndjson"
        found = last_of(answer)
        assert [(match["sessionId"], match["seq"], match["type"]) for match in found["matches"]] == [
            (session, 2, "user_message"),
            (session, 3, "tool_call"),
        ]
        assert found["complete"] and "TROUT swim" in found["matches"][0]["text"]
        assert found["read"] == found["size"] == sum(info.bytes for info in here.store.sessions())
        assert [match["sessionId"] for match in last_of(await http.get("/api/search", params={"q": "größe"}))["matches"]] == [other]
        assert last_of(await http.get("/api/search?q=trout+swim"))["matches"][0]["seq"] == 2
        assert last_of(await http.get("/api/search?q=nothing-like-it"))["matches"] == []
        assert (await http.get("/api/search?q=")).status_code == 400
        assert (await http.get("/api/search?q=-trout")).status_code == 400
        here.store[other].append([user_message(text="trout again")] * (MAX_MATCHES + 1))
        found = last_of(await http.get("/api/search?q=trout"))
        assert (len(found["matches"]), found["complete"]) == (MAX_MATCHES, False)


def last_of(answer: httpx.Response) -> dict[str, Any]:
    """The last line of a search, with the matches of all lines."""
    parts = [json.loads(line) for line in answer.text.splitlines()]
    assert all("complete" not in part or part["complete"] is None for part in parts[:-1])
    return parts[-1] | {"matches": [match for part in parts for match in part["matches"]]}


# ---------------------------------------------------------------------------------------------------------------------
# Server-sent events


async def stream_of(http: httpx.AsyncClient, path: str, upto: int, **headers: str) -> list[tuple[str, dict]]:
    """Events of a stream with their ids, until there are enough."""
    found: list[tuple[str, dict]] = []
    name = ""
    async with asyncio.timeout(20), http.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                name = line.removeprefix("id: ")
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
                if found[-1][1]["seq"] >= upto:
                    break
    return found


async def test_server_sent_events_go_on_from_the_last_one(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session(20)
        path = f"/api/sessions/{session}/stream"
        first = await stream_of(http, path, 11)
        assert [event["seq"] for _, event in first] == list(range(1, 12))
        assert first[-1][0] == f"{here.store[session].head().log_id}:11"
        rest = asyncio.create_task(stream_of(http, path, 26, **{"Last-Event-ID": first[-1][0]}))
        await asyncio.sleep(0.1)
        here.store[session].append(words(5))
        assert [event["seq"] for _, event in await rest] == list(range(12, 27))
        assert (await http.get(path, headers={"Last-Event-ID": "other:3"})).status_code == 409
        assert (await http.get(path, headers={"Last-Event-ID": "nonsense"})).status_code == 409
        assert (await http.get("/api/sessions/nobody/stream")).status_code == 404


async def test_a_stream_that_cannot_go_on_says_why_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def away(*_: object) -> AsyncIterator[Record]:
        raise StoreUnavailable("the database is away")
        yield

    async with served(tmp_path) as here, here.http() as http:
        session = here.session(20)
        head = here.store[session].head()
        path, at = f"/api/sessions/{session}/stream", {"Last-Event-ID": f"{head.log_id}:{head.seq}"}
        with monkeypatch.context() as patch:
            patch.setattr(FolderLog, "follow_records", away)
            async with asyncio.timeout(20):
                answer = await http.get(path, headers=at)
            assert answer.text.endswith('event: error\ndata: {"code":"away","message":"the database is away"}\n\n')
            reader = StreamReader(here, session, head.log_id)
            reader.seq = head.seq
            await reader.read(asyncio.get_running_loop().create_future())
            assert reader.problem == "away: the database is away"
        here.store[session].append(words(1))
        assert [event["seq"] for _, event in await stream_of(http, path, head.seq + 1, **at)] == [head.seq + 1]


# ---------------------------------------------------------------------------------------------------------------------
# Other processes


async def test_a_session_of_another_process_is_not_taken_from_it(tmp_path: Path):
    with process(tmp_path / "store") as other:
        async with other.http() as http:
            session = await demo(http, tmp_path, "count 1000")
        async with served(tmp_path / "store") as here, here.http() as http:
            one = (await http.get(f"/api/sessions/{session}")).json()
            assert one["live"] and "here" not in one
            said = command("user_message", "c", text="x")
            answer = await http.post(f"/api/sessions/{session}/commands", json=said)
            assert answer.status_code == 409 and answer.json()["error"]["code"] == "locked"
            assert str(other.pid) in answer.json()["error"]["message"]
            assert (await http.delete(f"/api/sessions/{session}")).status_code == 409
            assert (await http.get(f"/api/sessions/{session}/events")).status_code == 200


async def test_an_app_can_be_mounted_in_another(tmp_path: Path):
    async with served(tmp_path, mount="/record") as here, here.http() as http, here.socket() as peer:
        session = here.session(3)
        assert [one["id"] for one in (await http.get("/api/sessions")).json()["sessions"]] == [session]
        moved = await http.get(f"/?token={here.token}")
        assert moved.headers["location"] == "/record/" and "Path=/record" in moved.headers["set-cookie"]
        await peer.subscribe(session)
        assert len(await peer.events(4)) == 4
