"""What PyTorch answered to the tests that compare with it, for who has no PyTorch installed.

``python -m tests.answers`` records it. `stand_in` has the objects that take PyTorch's place, and
`archive` the files that the answers are kept in, one for every test file.
"""
