"""Arrays -> numbers: what the records of each probe say."""
