"""Long proofs: run whole by `make prove`, which stores what they found, and in short by the tests."""
