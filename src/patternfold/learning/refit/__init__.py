"""Correction of what was chosen before: all atoms and λ together."""
