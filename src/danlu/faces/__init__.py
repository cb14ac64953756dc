"""What people and programs touch."""
