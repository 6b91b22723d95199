"""What everything is made of: statistics, actions, estimates, and what the parts ask of each other."""
