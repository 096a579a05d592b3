"""The type checker that tests switch on for the package: whole numbers pass as floats."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
