"""The attack on an internal store: which of its records are decoys?"""
