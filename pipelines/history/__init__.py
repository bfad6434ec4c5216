"""What tuning found out: measured numbers of schedules by kernel, in a database, and their use when a program is compiled."""
