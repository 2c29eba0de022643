"""Events as a table, and questions to it in SQL."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest

import hansard
import hansard.cli
from hansard.events import Event, Usage, tool_call, tool_result, usage, user_message
from hansard.store.tables import require_module


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HANSARD_STORE", str(tmp_path / "store"))
    with hansard.open() as kept:
        for name, words in (("one", "hello"), ("two", "half \ud83d")):
            kept.create(name)
            kept[name].append([user_message(words), tool_call("c", "Bash", {"n": 1}), tool_result("c", {"ok": 1}, is_error=False)])
    return tmp_path / "store"


def run_sql(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = hansard.cli.main(["sql", *arguments])
    said = capfd.readouterr()
    return code, said.out, said.err


def test_the_role_of_a_message_is_the_wires() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    roles = ["developer", "system", "user", "assistant", "tool"]
    more = {"assistant": {"tool_calls": [call]}, "tool": {"tool_call_id": "c"}}
    said = [{"role": role, "content": role} | more.get(role, {}) for role in roles]
    table = hansard.frame(list(hansard.normalize(json.dumps(said).encode(), "openai-messages"))).to_arrow().to_pylist()
    assert [row["role"] for row in table if row["text"] in roles] == roles
    assert [row["role"] for row in table if row["type"] == "tool_call"] == ["assistant"]


def test_three_lines_in_a_notebook(store: Path) -> None:
    df = hansard.frame(store / "one" / "events.jsonl").to_pandas()
    calls = df[df.type == "tool_call"]
    assert (calls.tool_name.item(), calls.session_id.item(), str(df.block_index.dtype)) == ("Bash", "one", "Int64")
    assert df[df.type == "tool_result"].text.item() == '{"ok":1}'


def test_a_store_is_a_table_of_all_its_sessions_or_of_some(store: Path) -> None:
    kept = hansard.open()
    assert set(hansard.frame(kept).to_pandas().session_id) == {"one", "two"}
    assert set(hansard.frame(kept, "two").to_pandas().session_id) == {"two"}


def test_whatever_speaks_arrow_reads_it_as_it_is(store: Path) -> None:
    table = pyarrow.table(hansard.frame(hansard.open(), "one"))
    assert table.num_rows == len(list(hansard.open()["one"].read()))


def test_numbers_and_characters_that_no_column_can_hold() -> None:
    event: Event = usage("message", Usage(input_tokens=2**70, output_tokens=3))
    event.session_id = "\ud83d"
    (row,) = hansard.frame([event]).to_arrow().to_pylist()
    assert (row["input_tokens"], row["output_tokens"], row["session_id"]) == (None, 3, "\\ud83d")


def test_a_missing_library_is_named_with_what_to_install() -> None:
    with pytest.raises(hansard.UsageError, match=r"no_such_module: pip install 'hansard\[frames\]'"):
        require_module("no_such_module", "frames")


def test_none_of_the_libraries_is_imported_before_it_is_used() -> None:
    code = "import sys, hansard; hansard.frame([]); print({'pyarrow', 'pandas', 'duckdb'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_sql_asks_the_whole_store_and_what_is_named(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    question = "select session_id, count(*) as n from events where type = 'tool_call' group by 1 order by 1"
    code, out, _ = run_sql(capfd, question, "--json")
    assert (code, [json.loads(line) for line in out.splitlines()]) == (0, [{"session_id": "one", "n": 1}, {"session_id": "two", "n": 1}])
    assert run_sql(capfd, question, "one", "--json")[1] == '{"session_id":"one","n":1}\n'
    assert run_sql(capfd, question, str(store / "two" / "events.jsonl"))[1].split() == ["session_id", "n", "two", "1"]


def test_sql_can_use_the_table_twice(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    question = "select count(*) as n from events a join events b using (session_id, tool_call_id) where a.type < b.type"
    assert run_sql(capfd, question, "--json")[1] == '{"n":2}\n'


def test_sql_reaches_no_file(store: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    questions = {
        f"attach '{tmp_path}/x.sqlite' as other": "only be read",
        f"vacuum into '{tmp_path}/x.sqlite'": "only be read",
        "delete from turns": "only be read",
        "insert into events (seq) values (1)": "only be read",
        "create temp table mine (number)": "only be read",
        "pragma query_only = 0": "only be read",
        "select load_extension('x')": "only be read",
        "select readfile('/etc/hostname')": "no such function",
    }
    for question, problem in questions.items():
        code, _, err = run_sql(capfd, question)
        assert code == 2 and problem in err, (question, err)
    assert not (tmp_path / "x.sqlite").exists()


def test_a_question_that_is_none_is_an_error_of_one_line(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_sql(capfd, "selekt 1")
    assert (code, out, err.count("\n")) == (2, "", 1)
