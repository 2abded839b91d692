"""Arguments of calls as PyTorch takes them: dims, factory options, nested lists, numbers."""
