"""Lists and indexes made from facts, lessons and lead tables. Parts of build_knowledge.py."""
