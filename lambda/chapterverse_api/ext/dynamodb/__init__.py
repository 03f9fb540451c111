"""Conversations and limits in tables of Amazon DynamoDB."""
