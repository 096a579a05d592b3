"""Learning from more images than memory holds: blocks in, results of images and sums out."""
