"""Leaps and bounds: every size, and every deleted row, in one tree."""
