"""Serving what is on the record to others."""
