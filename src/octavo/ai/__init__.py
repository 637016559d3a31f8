"""What is made of text, by models or offline by `local`. What it gives is typed; what it reads is data."""
