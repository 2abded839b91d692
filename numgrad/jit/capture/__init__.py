"""What a traced function captured: code followed for what it reads, and guards for that."""
