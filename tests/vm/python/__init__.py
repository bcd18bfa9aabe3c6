"""The builtins `py.*`: what they give is what CPython gives, within bounds."""
