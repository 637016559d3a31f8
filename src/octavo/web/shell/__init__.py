"""Code that all pages share: the frame around them, templates, forms, texts, scripts and styles."""
