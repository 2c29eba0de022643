"""What every verb shares: how it fails. One clear sentence on stderr and an exit code; a traceback is always a bug of ours."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import click

from hansard.cli import INTERRUPTED
from hansard.errors import HansardError

FAILED = 2
"""It could not be done. 1 is kept for verbs whose answer is no."""

BUG = 70
"""Something went wrong that nobody foresaw (EX_SOFTWARE of sysexits.h): never to be taken for a verb's "no"."""

BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended."""

REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.EISDIR: "this is a folder, a file is needed",
    errno.ENOTDIR: "this is not a folder",
    errno.EEXIST: "it exists already",
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EFBIG: "the file would become larger than allowed",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "too many symbolic links",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files on this machine",
    errno.EIO: "the device reports an input/output error",
}


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Say on one line of stderr why it cannot be done, and exit. It names what was given, but no secret in it."""
    try:
        sys.stderr.write(f"hansard: {one_line(masked(message))}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody is listening; the exit code still tells
    raise SystemExit(code)


def masked(text: str) -> str:
    """The text without secrets."""
    from hansard.projections.redaction.redact import mask_text  # only who has something to say waits for it

    return mask_text(text)


def one_line(text: str) -> str:
    """The text with line ends and control characters spelled out: names of files and words of agents do not drive the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text.rstrip("\n"))


def explain(problem: OSError) -> str:
    """What the operating system refused, as a sentence: the name first, then the reason."""
    reason = REASONS.get(problem.errno or 0) or (problem.strerror or str(problem) or type(problem).__name__)
    names = [os.fsdecode(name) for name in (problem.filename, problem.filename2) if isinstance(name, (str, bytes))]
    return ": ".join([" -> ".join(names), reason] if names else [reason])


@contextmanager
def boundary() -> Generator[None]:
    """Around everything a command does: what the caller or the environment got wrong becomes one sentence and an exit code."""
    try:
        yield
        _flush()
    except BrokenPipeError:
        raise SystemExit(BROKEN_PIPE) from None  # the reader has seen enough, as `head` does
    except (KeyboardInterrupt, click.Abort):
        raise SystemExit(INTERRUPTED) from None
    except click.exceptions.Exit as done:
        raise SystemExit(done.exit_code) from None
    except click.ClickException as problem:
        fail(_usage(problem))
    except HansardError as problem:
        fail(str(problem))
    except OSError as problem:
        fail(explain(problem))
    except Exception:
        sys.stderr.write(masked(traceback.format_exc()))
        fail("this is a bug in hansard; the lines above say where", BUG)
    finally:
        _finish()


def _usage(problem: click.ClickException) -> str:
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    hint = f" See: {context.command_path} --help" if context else ""
    return problem.format_message() + hint


def _flush() -> None:
    if sys.stdout:  # None when the caller closed it
        sys.stdout.flush()


def _finish() -> None:
    """Write out what is still to be said. If that cannot be, say it to nobody, or Python complains when it tries again at exit."""
    try:
        _flush()
    except OSError:
        discard_stdout()


def discard_stdout() -> None:
    """What is written to stdout from now on goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
