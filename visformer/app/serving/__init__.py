"""What all sessions share: models, Traces, queue, limits; and the server itself."""
