"""From tables to answers: logs of many related tasks, read, diagnosed and fitted."""

from posse.logs.diagnose import diagnose as diagnose
from posse.logs.diagnosis import Diagnosis as Diagnosis
from posse.logs.diagnosis import diagnose_parts as diagnose_parts
from posse.logs.dsjson import read_dsjson as read_dsjson
from posse.logs.evaluation.evaluate import evaluate as evaluate
from posse.logs.evaluation.replay import Replay as Replay
from posse.logs.evaluation.replay import replay as replay
from posse.logs.evaluation.result import Evaluation as Evaluation
from posse.logs.example import ExampleLog as ExampleLog
from posse.logs.example import example_log as example_log
from posse.logs.explain import Effect as Effect
from posse.logs.explain import Explanation as Explanation
from posse.logs.explain import explain as explain
from posse.logs.fit import fit as fit
from posse.logs.fit import model_of as model_of
from posse.logs.predict import Predictions as Predictions
from posse.logs.recipe import Recipe as Recipe
from posse.logs.summarise import LogSummary as LogSummary
from posse.logs.summarise import summarise as summarise
