"""The ledger on Postgres."""
