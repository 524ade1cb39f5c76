"""The parts of refining (seed 000 §3.3.1): prose, filler, pasted transcripts, shell lines, failures,
decisions, answers.
"""
