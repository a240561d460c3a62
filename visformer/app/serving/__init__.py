"""What all sessions share: the server, its models and Traces, the queue and the limits."""
