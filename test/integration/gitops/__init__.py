"""Argo CD and Flux, real, over a Git repository (test_gitops.py)."""
