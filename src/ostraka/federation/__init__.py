"""Federations of organisations: certificates, keys, the server, its parties, and what is wrong."""
