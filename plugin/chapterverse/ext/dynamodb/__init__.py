"""Tables of Amazon DynamoDB."""
