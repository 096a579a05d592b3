"""What a manifold is: patterns of atoms, transformations, and the images between them."""
