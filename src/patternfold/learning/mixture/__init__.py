"""Several patterns in one set of images: parts, found by assignment, and groups of them."""
