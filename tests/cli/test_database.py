"""Every verb on a store in a database: what it says is what it says of a folder, and no password is in it."""

from __future__ import annotations

import json
import re

import pytest

from hansard.store import JsonlStore, migrate_store, open_store
from tests.cli.test_compress import ID, VERBS
from tests.postgres import PASSWORD


@pytest.mark.slow
def test_every_verb_says_of_a_database_what_it_says_of_a_folder(run, session, store, database, monkeypatch):
    folder = [run(*verb) for verb in VERBS]
    with JsonlStore(store) as source, open_store(database.address) as rows:
        rows[ID].ingest(source[ID].records())
        for blob in (store / ID / "blobs").iterdir():
            rows[ID].put_blob(source[ID].get_blob(blob.name))
    monkeypatch.setenv("HANSARD_STORE", database.tcp)
    for verb, was in zip(VERBS, folder, strict=True):
        said = run(*verb)
        assert said == was, verb


@pytest.mark.slow
def test_what_is_imported_into_a_database_is_there_once(run, session, database):
    for state in ("1 added", "1 unchanged"):
        said = run("import", session.parent, "--store", database.tcp)
        assert (said.code, state in said.out) == (0, True), said
        assert PASSWORD not in said.out + said.err
    assert json.loads(run("sessions", "--json", "--store", database.tcp).out)[0]["id"] == ID
    assert run("verify", ID[:10], "--store", database.tcp).code == 0
    again = run("renormalize", ID, "--store", database.tcp)
    assert again.code == 0 and len(json.loads(run("sessions", "--json", "--store", database.tcp).out)) == 2


def test_what_needs_a_folder_says_so(run, database):
    said = run("compress", "--all", "--store", database.tcp)
    assert said.code == 2 and "in a folder" in said.err and PASSWORD not in said.err


def test_the_doctor_looks_at_a_database(run, database):
    found = json.loads(run("doctor", "--json", "--store", database.tcp).out)["store"]
    assert (found["exists"], found["sessions"], found["problems"]) == (True, 0, []) and PASSWORD not in json.dumps(found)
    away = json.loads(run("doctor", "--json", "--store", re.sub(r":\d+/", ":1/", database.tcp)).out)["store"]
    assert "check host and port" in away["problems"][0] and PASSWORD not in json.dumps(away)


def test_migrate_says_what_it_did(run, database, store):
    assert run("migrate", "--store", database.tcp).out.startswith("set up, schema ")
    assert run("migrate", "--store", database.tcp).out.endswith("already\n")
    assert migrate_store(database.address)[0] > 0
    assert run("migrate", "--store", store).code == 2


def test_an_address_that_does_not_do_is_one_line(run, database):
    said = run("sessions", "--store", database.tcp.replace(PASSWORD, "wrong"))
    assert said.code == 2 and said.err.count("\n") == 1 and "check the user and the password" in said.err
