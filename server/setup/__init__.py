"""Wires this server into Kimi Code's home, and takes it out again byte for byte.

``plan`` decides (pure), ``journal`` writes (all or nothing), ``commands`` talks to the person.
"""
