"""What the programs in hack/ share: the local cluster, the tools it is made of, images, progress. Standard library only."""
