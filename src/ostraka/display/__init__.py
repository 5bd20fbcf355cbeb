"""What a person sees: tables, summaries, plots, the progress of a run."""
