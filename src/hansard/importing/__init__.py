"""Importing: files that agents wrote, put on the record. Doing it twice adds nothing; a file that grew adds what is new.

`find` says which files make up which session (a `job`), `reading` turns one file into events, `stated` what is written anew each time, such
as a `database`; `position` remembers how far each was read, `clock` when a recording began; `session` puts these together for one session,
`many` for all of them.
"""
