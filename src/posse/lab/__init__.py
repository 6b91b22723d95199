"""Many runs: what has a name, what is run, how, and the tables that come of it. No drawing."""
