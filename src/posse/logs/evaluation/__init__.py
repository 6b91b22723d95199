"""What a policy would have earned on the traffic of a log: estimates, intervals, and doubts."""
