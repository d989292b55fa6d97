"""The command line of batchppo; installed as `batchppo_cli`."""
