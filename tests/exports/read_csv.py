"""Prints a CSV file as JSON, an object for each line, as Python's csv module reads it when it is strict."""
import csv
import json
import sys

with open(sys.argv[1], newline="", encoding="utf-8") as file:
    text = file.read()
assert text.endswith("\r\n"), "lines end with CRLF"
with open(sys.argv[1], newline="", encoding="utf-8") as file:
    rows = list(csv.reader(file, strict=True))
assert all(len(row) == len(rows[0]) for row in rows), "every line has all fields"
json.dump([dict(zip(rows[0], row)) for row in rows[1:]], sys.stdout)
