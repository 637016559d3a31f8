# ruff: noqa: E501
"""Rewords the 17 claims of ContractNLI, so that the model learns what they mean and not their words."""

from __future__ import annotations

from random import Random

from octavo_small.sources import CONTRADICTS, ENTAILS, Pair

# For the start of each claim: wordings that mean the same, and wordings that deny it.
CLAIMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Agreement shall not grant": (
        ("The agreement gives the recipient no rights in the confidential information.", "No licence is granted under this agreement.", "The information remains the property of the disclosing party."),
        ("The agreement grants the recipient rights in the confidential information.", "The recipient receives a licence to the confidential information.", "Ownership of the information passes to the recipient."),
    ),
    "All Confidential Information shall be expressly": (
        ("Only information that is marked as confidential is protected.", "Information must be labelled confidential to be covered."),
        ("Information is confidential even if it is not marked as such.", "Confidential information does not need to be labelled."),
    ),
    "Confidential Information may include verbally": (
        ("Information that is passed on orally can be confidential.", "Spoken information is covered as well."),
        ("Only written information can be confidential.", "Information conveyed orally is not confidential information.", "Spoken information is never covered by the agreement."),
    ),
    "Confidential Information shall only include": (
        ("Only technical information is confidential.", "Nothing but technical information is covered."),
        ("Confidential information includes information that is not technical.", "Business and financial information is confidential too.", "Confidential information is not limited to technical information."),
    ),
    "Receiving Party may acquire": (
        ("The recipient may obtain similar information from others.", "Information received from a third party is not restricted."),
        ("The recipient may not obtain similar information from anyone else.", "Information from third parties is restricted as well."),
    ),
    "Receiving Party may create a copy": (
        ("The recipient may copy the confidential information in some cases.", "Copies of the information are allowed where needed."),
        ("The recipient may not copy the confidential information.", "No copies of the information may be made under any circumstances.", "Making copies is prohibited."),
    ),
    "Receiving Party may independently": (
        ("The recipient is free to develop similar information by itself.", "Independent development of similar information is allowed."),
        ("The recipient may not develop similar information by itself.", "Independent development of similar information is forbidden."),
    ),
    "Receiving Party may retain": (
        ("The recipient may keep some of the information after the return or destruction of the rest.", "Some copies may be kept after the end of the agreement."),
        ("The recipient must not keep any of the information after the return or destruction.", "Everything must be returned or destroyed, and no copy may be kept."),
    ),
    "Receiving Party may share some Confidential Information with some of": (
        ("Employees of the recipient may see the confidential information.", "The recipient may disclose the information to its staff who need it."),
        ("The recipient may not share the information with its employees.", "No employee of the recipient may see the confidential information."),
    ),
    "Receiving Party may share some Confidential Information with some third": (
        ("The recipient may show the information to its advisors and consultants.", "Disclosure to some outside advisors is allowed."),
        ("The recipient may not disclose the information to any third party.", "No outside advisor or consultant may receive the information.", "Disclosure to third parties is prohibited."),
    ),
    "Receiving Party shall destroy": (
        ("The recipient must return or destroy the information when the agreement ends.", "At the end of the agreement the documents are given back or destroyed."),
        ("The recipient does not have to return or destroy the information when the agreement ends.", "The recipient may keep all information after termination."),
    ),
    "Receiving Party shall not disclose the fact": (
        ("The recipient must keep the existence of the agreement secret.", "Nobody may be told that the parties are negotiating."),
        ("The recipient may tell others that the agreement exists.", "The parties may make their negotiations public."),
    ),
    "Receiving Party shall not reverse": (
        ("The recipient must not reverse engineer anything that contains the information.", "Reverse engineering is forbidden."),
        ("The recipient may reverse engineer the products it receives.", "Reverse engineering is allowed."),
    ),
    "Receiving Party shall not solicit": (
        ("The recipient must not hire away people of the disclosing party.", "Soliciting employees of the other party is forbidden."),
        ("The recipient may solicit employees of the disclosing party.", "The recipient is free to hire the other party's staff."),
    ),
    "Receiving Party shall not use": (
        ("The recipient may use the information only for the agreed purpose.", "Use of the information for anything else is forbidden."),
        ("The recipient may use the information for any purpose.", "The information may be used for purposes that the agreement does not name."),
    ),
    "Receiving Party shall notify": (
        ("If the law compels disclosure, the recipient must tell the disclosing party.", "The disclosing party must be informed of any disclosure required by law."),
        ("The recipient does not have to tell the disclosing party if the law compels disclosure.", "No notice is needed before a disclosure that the law requires."),
    ),
    "Some obligations of Agreement": (
        ("Some duties continue after the agreement ends.", "The duty of confidentiality outlasts the agreement."),
        ("All obligations end when the agreement ends.", "No duty survives the termination of the agreement."),
    ),
}  # fmt: skip


def reword(pair: Pair, rng: Random) -> list[Pair]:
    """Return the pair with its claim in other words, and denied."""
    wordings = next((both for start, both in CLAIMS.items() if pair.b.startswith(start)), None)
    if wordings is None:
        return []
    same, denied = wordings
    made = [Pair(pair.a, rng.choice(same), pair.label, "contract-same")]
    if pair.label == ENTAILS:
        made += [Pair(pair.a, text, CONTRADICTS, "contract-denied") for text in rng.sample(denied, min(2, len(denied)))]
    elif pair.label == CONTRADICTS:
        made.append(Pair(pair.a, rng.choice(denied), ENTAILS, "contract-denied"))
    else:
        made.append(Pair(pair.a, rng.choice(denied), pair.label, "contract-denied"))
    return made


def claim_pairs() -> list[Pair]:
    """Return the claims in other words against their denials."""
    pairs: list[Pair] = []
    for same, denied in CLAIMS.values():
        pairs += [Pair(a, b, CONTRADICTS, "claim-denied") for a in same for b in denied]
        pairs += [Pair(a, b, ENTAILS, "claim-same") for a in same for b in same if a != b]
    return pairs
