"""What a user meets when something goes wrong in the middle. The result is a table, not a judgement."""
PEERS = []
