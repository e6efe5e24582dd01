"""Which setting to choose: traces, tails, quick simulations, and words about them."""
