"""What all pages share: the frame around them, templates, forms, wording, scripts and styles."""
