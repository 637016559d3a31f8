"""A certificate that only tests trust, for `right.example`, with its key, which protects nothing."""

from __future__ import annotations

import ssl
from pathlib import Path

NAME = "right.example"
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBsTCCAVegAwIBAgIUKf0LHAoOd25qE/Va7d6LzQ6qnhAwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmlnaHQuZXhhbXBsZTAgFw0yNjExMTUxNTExNDFaGA8yMTI2
MTAyMjE1MTE0MVowGDEWMBQGA1UEAwwNcmlnaHQuZXhhbXBsZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABP6bW4lFZ/Pvw6ODI7AxMlq0sNjScnPQOZxXcbD21GHY
aaV3mYxIJptO7+lZiuuw3b+qvAgIW2ce6k+lZdP9XbGjfTB7MB0GA1UdDgQWBBSF
Zlj40zqdWI29g7/dfog8VuXM8zAfBgNVHSMEGDAWgBSFZlj40zqdWI29g7/dfog8
VuXM8zAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDXJpZ2h0LmV4YW1wbGUw
DgYDVR0PAQH/BAQDAgKEMAoGCCqGSM49BAMCA0gAMEUCIEm3i3d05x9qQPHjx5cB
UmVmpYaymN5J3RXKFz46NMrvAiEA3tGK02wPAg6vfYBc4obspBOXuuw0FbPZOZ+W
hlZjAzM=
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+6vg4gJFlo3e30U0
cO5ZzeOxnaXve6EpAqwpxCAP3WShRANCAAT+m1uJRWfz78OjgyOwMTJatLDY0nJz
0DmcV3Gw9tRh2Gmld5mMSCabTu/pWYrrsN2/qrwICFtnHupPpWXT/V2x
-----END PRIVATE KEY-----
"""


def server_context(folder: Path) -> ssl.SSLContext:
    file = folder / "certificate.pem"
    file.write_text(KEY + CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def trusting_context() -> ssl.SSLContext:
    """For a client: as always, but it believes this certificate too."""
    return ssl.create_default_context(cadata=CERTIFICATE)
