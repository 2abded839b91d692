"""What the commands of ``python -m numgrad`` do."""
