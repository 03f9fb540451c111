"""What the rooms with a provider of embeddings need: batches, checks of replies, models and their sizes."""
