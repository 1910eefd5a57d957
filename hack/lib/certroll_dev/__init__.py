"""What the programs in hack/ share: the local cluster, its tools, images, progress. Standard library only."""
