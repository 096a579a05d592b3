"""How it is computed: chunks of images, compiled code, precision, least squares."""
