"""States of a policy and what it says of them, beside the truth (test_situations.py)."""
