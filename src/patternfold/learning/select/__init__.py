"""Selection of the next atom: global search, local refinement, solvers."""
