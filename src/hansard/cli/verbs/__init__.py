"""One file for each verb, imported when that verb is used."""
