"""Special functions; a module of them is loaded when a kernel first calls one of it."""
