"""What the records say: findings, and the explanation of a delay."""
