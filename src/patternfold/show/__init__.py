"""What people look at: displays, pages and exported pictures."""
