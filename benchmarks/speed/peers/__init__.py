"""FedAvg in other frameworks, each in a module that alone imports it."""
