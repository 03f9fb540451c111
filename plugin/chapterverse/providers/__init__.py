"""What embedders, rerankers and generators of one provider share."""
