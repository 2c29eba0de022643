"""Importing: files that agents wrote, put on the record. Doing it twice adds nothing; a file that grew adds what is new.

`find` says which files make up which session, `reading` turns one file into events, `position` remembers how far each file was read,
`session` puts the three together for one session, `many` for all of them.
"""
