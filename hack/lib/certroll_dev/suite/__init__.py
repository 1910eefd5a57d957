"""All tests in one run: hack/test."""
