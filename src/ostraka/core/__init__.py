"""The contract: tasks, parties, methods, predictors, objectives and the one training loop. Knows no method or engine."""
