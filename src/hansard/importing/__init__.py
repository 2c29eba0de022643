"""Imports the session files that agents keep on disk. Idempotent: importing twice adds nothing, and a file that grew adds what is new.

`discovery` finds out which files make up which session (a `job`), `stream_reader` turns one file, or the rows of one of the `databases`,
into events, `position` remembers how far each was read; `session` puts these together for one session, and `run` for all of them.
`capture` copies the files of a large history into the store before they are read.
"""
