"""Stand-ins for paid APIs: real HTTP over loopback, in the documented wire format, with a queue and a history."""
