"""Commands with a mistake in them, as tables; tests/test_mistakes.py runs them all."""
