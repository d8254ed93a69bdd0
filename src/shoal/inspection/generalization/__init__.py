"""How the values of a quasi-identifier are generalized: ranges of numbers and moments, trees of everything else."""
