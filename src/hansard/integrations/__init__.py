"""Ways into other people's programs. Each file needs the program that it is for, and nothing else of hansard needs any of these."""
