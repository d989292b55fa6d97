"""A Gymnasium plugin: vector environments whose environments live in worker processes."""
