"""Lessons and exercises: find them, run them, grade them.

The lessons are plain Python files in ``tutorials``; ``tinyattn learn`` steps through them in a terminal,
and an editor or a notebook opens them as they are.
"""
