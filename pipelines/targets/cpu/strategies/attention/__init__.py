"""Schedules of attention: many queries, few queries, and tiles of bf16."""
