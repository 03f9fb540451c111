"""Models and guardrails of Amazon Bedrock."""
