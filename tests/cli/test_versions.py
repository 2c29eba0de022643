"""Versions of agents, compared with those tested."""

from __future__ import annotations

import pytest

from hansard.cli.agent_versions import VERSION, compare


@pytest.mark.parametrize(
    ("here", "tested", "verdict"),
    [
        ("0.167.0", "0.166.0", "newer"),
        ("0.166.0", "0.166.0", "same"),
        ("1.0.10", "1.0.9", "newer"),
        ("1.2", "1.2.0", "same"),
        ("2.1.325+build.7", "2.1.325", "same"),
        ("0.166.0-alpha.2", "0.166.0", "older"),
        ("0.167.0-alpha.2", "0.166.0", "newer"),
        ("1.0.0-rc.10", "1.0.0-rc.9", "newer"),
        ("1.0.0-beta", "1.0.0-alpha.9", "newer"),
        ("1.0.0-4", "1.0.0", "older"),
        ("1.0.0rc1", "1.0.0", "older"),
        ("0.61.0-nightly.20261101.abc", "0.61.0", "older"),
        ("0.15.10", "0.15.10, 0.24.4", "same"),
        ("0.20.0", "0.15.10, 0.24.4", "older"),
        ("0.25.0", "0.24.4, 0.15.10", "newer"),
        ("0.20.0", "0.16.0 (core 0.137.0)", "newer"),
        ("2026.02.13-7ae6800", "public captures of 2026-02, never run", "same"),
        ("2026.03.01-7ae6800", "public captures of 2026-02, never run", "newer"),
        ("2025.09.18-7ae6800", "2026.01.02-aaaaaaa", "older"),
        ("2026.01.02-7ae6800", "2026.01.02-aaaaaaa", "same"),
        ("soon", "1.0", None),
        (None, "1.0", None),
        ("1.0", None, None),
        ("1.0", "never run", None),
    ],
)
def test_newer_same_older(here: str | None, tested: str | None, verdict: str | None):
    assert compare(here, tested) == verdict


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("2.1.999 (Claude Code)", "2.1.999"),
        ("codex-cli 0.167.0-alpha.3\n", "0.167.0-alpha.3"),
        ("2026.02.13-7ae6800", "2026.02.13-7ae6800"),
        ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", "1.0.102"),
        ("v1.18.33", "1.18.33"),
    ],
)
def test_a_version_is_found_in_a_sentence(said: str, version: str):
    found = VERSION.search(said)
    assert found is not None
    assert found.group() == version
