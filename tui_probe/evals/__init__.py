"""Evaluations: a question that some traces together answer, as tables, text and drawings, and how to collect them.

Each is a folder here whose module has an ``EVALUATION``; ``registry`` finds them, and no other module names one.
``programs`` are what they profile, ``traces`` what they are shown with where no one names a trace.
"""
