"""From tables to answers: logs of many related tasks, read, diagnosed and fitted."""

from posse.logs.recipe import Recipe as Recipe
from posse.logs.summarise import LogSummary as LogSummary
from posse.logs.summarise import summarise as summarise
