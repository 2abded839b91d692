"""From loops and scalar formulas to compiled code: printing, compiling, caching."""
