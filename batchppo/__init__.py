"""Proximal policy optimization in TensorFlow, for batches of environments."""
