"""From tables to answers: logs of many related tasks, read, diagnosed and fitted."""
