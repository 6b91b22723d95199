"""Estimators for the world of scikit-learn: many related regressions that learn from each other."""
