"""Tests of the miner and what they are made with."""
