"""What parties and their group do outside of runs: members of own data, one file each, and the
ensemble that answers with them.
"""
