"""Counters of requests and money in an SQLite file, for the processes of one machine. State: stable."""
