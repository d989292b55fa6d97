"""How Python functions become TensorFlow functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def compiled(
    method: Callable[..., Any], jit_compile: bool = False, input_signature: Any = None
) -> Any:
    """Returns a TensorFlow function of its own around a method.

    TensorFlow counts the traces of a method over all instances, and would warn of "frequent
    retracing" when a program makes a few agents; a lambda is counted by itself. Loops and
    conditions are TensorFlow's already: without autograph, tracing takes half the time.

    Args:
        method: what to compile.
        jit_compile: whether XLA does it.
        input_signature: the arguments' specifications, to be compiled once for any batch size.
    """
    return tf.function(
        lambda *arguments: method(*arguments),  # noqa: PLW0108 - see above
        jit_compile=jit_compile,
        input_signature=input_signature,
        autograph=False,
    )
