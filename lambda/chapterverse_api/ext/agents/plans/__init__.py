"""Plans: steps that lead a reader through what the documentation describes. Start at `requests.respond`."""
