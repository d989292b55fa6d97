"""`python -m batchppo_cli`."""

from .group import main

if __name__ == "__main__":
    main()
