"""The sections of a report, one file each: from the value to what stands below a heading."""
