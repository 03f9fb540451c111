"""Sites that are already built, by whatever generator: the widget put into them, and what is wrong with them."""
