"""From tables to answers: logs of many related tasks, read, diagnosed and fitted."""

from posse.logs.diagnose import diagnose as diagnose
from posse.logs.diagnosis import Diagnosis as Diagnosis
from posse.logs.diagnosis import diagnose_parts as diagnose_parts
from posse.logs.recipe import Recipe as Recipe
from posse.logs.summarise import LogSummary as LogSummary
from posse.logs.summarise import summarise as summarise
