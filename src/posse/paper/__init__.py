"""The paper: its theorems, and one file per figure with its cells, its claims and its drawing."""
