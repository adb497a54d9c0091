"""From source to sink: batches are taken, prepared, swapped, committed and delivered."""
