"""What one party does on its own machine: a task, its member, a look at what leaves."""
