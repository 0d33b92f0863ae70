"""Mining of public histories: facts about changes to GPU kernels, and nothing else of them.

``git_history`` and ``api`` fetch, ``patch`` and ``spans`` read, ``diff_facts``, ``tokens``, ``facets`` and ``tiers``
judge (pure), ``cursor`` remembers, ``emit`` writes.
"""
