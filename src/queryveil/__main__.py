"""`python -m queryveil`."""

from queryveil.cli import main

if __name__ == "__main__":
    main()
