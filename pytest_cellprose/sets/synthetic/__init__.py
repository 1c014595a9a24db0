"""Development workbooks from seeded generators, every formula with its result, and their questions.

One module per workbook; `development` lists them and writes the files.
"""
