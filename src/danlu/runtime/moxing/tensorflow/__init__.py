"""MoXing's training loop for TensorFlow 1: not offered, and said so at once."""

from __future__ import annotations

from moxing.framework.file._words import say

raise ImportError(say("no-tensorflow"), name="moxing.tensorflow")
