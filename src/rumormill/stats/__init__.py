"""Statistics without a home in the field libraries: bootstrap, exact intervals, winsorised means."""
