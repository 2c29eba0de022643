"""Moving: sessions brought from one store to another, whichever engines the two are.

`session` brings one over, byte for byte, from where the target is; `shipping` does it for all of them for ever; `retiring` brings old ones
into an archive and then deletes them, on the record.
"""
