"""Scripts that make the tables and figures of the documentation: python -m experiments.…"""
