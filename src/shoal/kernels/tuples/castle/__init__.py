"""The kernels of CASTLE: join clusters, generalize, split, merge."""
