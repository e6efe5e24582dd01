"""What several test modules share: the oracle, its adapters, small games, synthetic logs."""
