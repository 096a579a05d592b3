"""Selection of atoms: global search, local refinement, correction of all together."""
