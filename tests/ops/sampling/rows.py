"""Rows of samples of distributions in the tables that walk the catalogue."""

from __future__ import annotations

NOT_COMPARED = {"binomial", "poisson"}  # two libraries draw other numbers
LEFT_OUT = {"binomial", "multinomial", "poisson"}
