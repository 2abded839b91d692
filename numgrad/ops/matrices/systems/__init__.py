"""Systems of linear equations: solutions, inverses, least squares, pseudoinverses."""
