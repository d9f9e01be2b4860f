"""Terms of every version: pins, signatures, and what a person is told about presence; in both libraries."""

import json
import shutil
from base64 import b64decode, b64encode
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hearsay_device import DeviceError, Limits
from hearsay_device.terms import read_terms
from servers.ports import free_port
from tests.clients.cases import ANY, ASKED, FILE, table_cases, values_of
from tests.clients.libraries import LIBRARIES, Clock, open_device, store, stored
from tests.clients.test_device import refused
from tests.helpers.loopback import answering, gateway
from tests.helpers.node import LIBRARY

SIGNED = {each["name"]: each for each in json.loads(FILE.read_text())["signed"]}
OF_VERSION_3 = [name for name, each in SIGNED.items() if json.loads(each["terms"])["version"] == 3]
EARLIER = [name for name in SIGNED if name not in OF_VERSION_3]
NOISE = "version 3, noise"
EXACT = "version 3, exact numbers"
JANUARY_2 = 1767312000.0
JANUARY_4 = JANUARY_2 + 2.5 * 86400  # by then no report of the old file is of this period
OF_0_2 = {
    "python": Path(__file__).parents[1] / "states" / "device-of-0.2.sqlite",
    "javascript": LIBRARY / "tests" / "device-of-0.2.json",
}
AUTHOR = Ed25519PrivateKey.from_private_bytes(sha256(b"the author of this test").digest())
AUTHOR_KEY = b64encode(AUTHOR.public_key().public_bytes_raw()).decode()


def terms_of(name: str) -> bytes:
    return str(SIGNED[name]["terms"]).encode()


def with_declared(terms: bytes, **declared: Any) -> bytes:
    """The same terms but for some declared keys."""
    resolved = json.loads(terms)
    resolved["declared"] |= declared
    return json.dumps(resolved, sort_keys=True, separators=(",", ":")).encode()


def of_version_3(terms: bytes) -> bytes:
    """The same survey, as if it had been read as version 3."""
    resolved = json.loads(terms)
    resolved["version"] = 3
    declared = resolved["declared"]
    minimum = declared.pop("minimum", 0)
    if "presence_epsilon" not in declared:
        declared["publish_from"] = minimum
    if "horizon" in declared:
        declared["lookback"] = declared.pop("horizon")
    for attribute in declared["attributes"]:
        if "several" in attribute:
            attribute["multi_select"] = attribute.pop("several")
    return json.dumps(resolved, sort_keys=True, separators=(",", ":")).encode()


def opened(library: str, path: Path, entropy: str | None = None) -> Any:
    return open_device(library, path, Clock(JANUARY_2), Limits(**ANY), entropy)


def hash_of(terms: bytes) -> str:
    return sha256(terms).hexdigest()


def signature_of(text: str) -> str:
    return b64encode(AUTHOR.sign(text.encode())).decode()


@pytest.mark.parametrize("name", SIGNED)
def test_terms_are_joined_under_their_pins_and_no_other(tmp_path: Path, library: str, name: str) -> None:
    given = SIGNED[name]
    full = given["pins"][-1]
    with opened(library, tmp_path / "refused") as device:
        for wrong in (full[1:], full[:-1], full.upper(), f"{full}0", "0" * 64, "0" * 32, ""):
            with refused("pin"):
                device.join(terms_of(name), pin=wrong)
        with refused("unknown"):
            device.settle("test", {})
    for pin in given["pins"]:
        with opened(library, tmp_path / pin) as device:
            device.join(terms_of(name), pin=pin)
            assert json.loads(device.settle("test", {}).report)["fingerprint"] == given["fingerprint"] == full[:32]


@pytest.mark.parametrize("name", OF_VERSION_3)
def test_a_pin_of_32_digits_is_not_enough_for_version_3_and_the_error_has_all_64(
    tmp_path: Path, library: str, name: str
) -> None:
    with opened(library, tmp_path / "device") as device:
        with pytest.raises(DeviceError, match=SIGNED[name]["pins"][-1]) as error:
            device.join(terms_of(name), pin=SIGNED[name]["fingerprint"])
        assert error.value.code == "pin"
        # What is not even the same fingerprint is not advised.
        with pytest.raises(DeviceError, match="do not answer it"):
            device.join(terms_of(name), pin="0" * 32)


@pytest.mark.parametrize("name", SIGNED)
def test_terms_without_a_pin_are_refused_with_the_pin_that_fits(tmp_path: Path, library: str, name: str) -> None:
    usual = SIGNED[name]["pins"][0]
    with (
        opened(library, tmp_path / "device") as device,
        pytest.raises(DeviceError, match=rf"\b{usual}\b") as error,
    ):
        device.join(terms_of(name))
    assert error.value.code == "pin"


@pytest.mark.parametrize("name", SIGNED)
def test_a_later_pin_is_compared_with_the_terms_that_were_joined(tmp_path: Path, library: str, name: str) -> None:
    """Whatever pin they were joined under; an address where nobody listens is what a pin that fits comes to."""
    given, nowhere = SIGNED[name], f"http://127.0.0.1:{free_port()}"
    fitting = {*given["pins"], None}
    others = {given["fingerprint"], "0" * 32, "0" * 64, given["fingerprint"] + "0" * 32} - fitting
    for joined_under in fitting:
        path = tmp_path / str(joined_under)
        with opened(library, path) as device:
            device.join(terms_of(name), pin=joined_under, trust_first_use=joined_under is None)
        with opened(library, path) as device:
            for pin in fitting:
                with refused("unreachable"):
                    device.send(nowhere, "test", {}, pin=pin)
            for pin in others:
                with refused("pin"):
                    device.send(nowhere, "test", {}, pin=pin)


def test_a_file_of_release_0_2_takes_pins_of_either_length(tmp_path: Path, library: str) -> None:
    path, nowhere = tmp_path / "device", f"http://127.0.0.1:{free_port()}"
    shutil.copy(OF_0_2[library], path)
    documents = stored(library, path)["surveys"]
    assert len(documents) >= 5
    with open_device(library, path, Clock(JANUARY_4), Limits(**ANY)) as device:
        for survey, joined in documents.items():
            full = hash_of(joined["terms"].encode())
            for pin in (full, full[:32], None):
                with refused("unreachable"):
                    device.send(nowhere, survey, {}, pin=pin)
            for pin in ("0" * 64, full[:32] + "0" * 32, full[32:]):
                with refused("pin"):
                    device.send(nowhere, survey, {}, pin=pin)


def test_a_pin_is_compared_with_what_a_gateway_gives(tmp_path: Path, library: str) -> None:
    """Also after the device has left: then the terms are gone, and are fetched again."""
    pins = SIGNED[NOISE]["pins"]
    with gateway(answering(200, terms_of(NOISE))) as running, opened(library, tmp_path / "device") as device:
        with refused("pin"):
            device.send(running.address, "test", {}, pin=SIGNED[NOISE]["fingerprint"])
        assert device.send(running.address, "test", {}, pin=pins[0]).status == "reported"
        device.leave("test")
        with refused("pin"):
            device.send(running.address, "test", {}, pin=SIGNED[NOISE]["fingerprint"])
        assert device.send(running.address, "test", {}, pin=pins[0]).status == "already reported"


def test_a_file_says_no_more_about_terms_of_version_3_than_about_others(tmp_path: Path, library: str) -> None:
    kept = []
    for name in (NOISE, "version 1"):
        with opened(library, tmp_path / name) as device:
            device.join(terms_of(name), pin=SIGNED[name]["pins"][-1])
        document = stored(library, tmp_path / name)
        assert document["format"] == 4
        assert document["surveys"]["test"]["fingerprint"] == SIGNED[name]["fingerprint"]
        kept.append(document["surveys"]["test"].keys())
    assert kept[0] == kept[1]


def test_other_terms_with_the_same_first_digits_are_changed_terms(tmp_path: Path, library: str) -> None:
    """An author might find two; here the file is made to say so."""
    path, others = tmp_path / "device", "version 3, exact numbers by gaps"
    with opened(library, path) as device:
        device.join(terms_of(EXACT), trust_first_use=True)
    document = stored(library, path)
    document["surveys"]["test"]["fingerprint"] = SIGNED[others]["fingerprint"]
    store(library, path, document)
    with opened(library, path) as device, refused("changed"):
        device.join(terms_of(others), pin=SIGNED[others]["pins"][0])


def test_a_question_that_is_the_same_in_both_versions_has_the_same_memos(tmp_path: Path, library: str) -> None:
    terms = {3: terms_of(EXACT), 1: terms_of("version 1")}
    ids = {version: [question.id for question in read_terms(each).questions] for version, each in terms.items()}
    assert ids[1] == ids[3]
    keys = []
    for each in terms.values():
        path = tmp_path / hash_of(each)
        with opened(library, path, entropy="one device") as device:
            device.join(each, trust_first_use=True)
            device.settle("test", {"a": "x"})
        keys.append(stored(library, path)["keys"])
    assert keys[0] == keys[1] and list(keys[0]) == ids[1]


SURVEYS = {name: scheme for name, scheme in table_cases().items() if read_terms(scheme.terms).version < 3}
IN_SHORT = {*ASKED, "any text", "local days, a shorter day", "sets, capped, with other"}
NAMES = [name if name in IN_SHORT else pytest.param(name, marks=pytest.mark.long(part="clients")) for name in SURVEYS]


def test_the_surveys_that_are_tried_in_short_are_there() -> None:
    assert SURVEYS.keys() >= IN_SHORT


@pytest.mark.parametrize("name", NAMES)
def test_surveys_of_version_3_are_answered_as_before_and_alike_by_both_libraries(tmp_path: Path, name: str) -> None:
    """Under each question's own key, and with its own gap or flags; only what is drawn for a fingerprint is other."""
    before = SURVEYS[name].terms
    after = of_version_3(before)
    values = values_of(SURVEYS[name], 1)
    moment = SURVEYS[name].survey.bounds(0)[0].timestamp() + 1
    reports, keys = [], []
    for library, terms in product(LIBRARIES, (before, after)):
        path = tmp_path / f"{library} {hash_of(terms)}"
        with open_device(library, path, Clock(moment), Limits(**ANY), entropy=name) as device:
            device.join(terms, pin=hash_of(terms))
            report = device.settle("test", values).report
        keys.append(stored(library, path)["keys"])
        reports.append(json.loads(report))
    assert reports[:2] == reports[2:]
    assert keys == keys[:1] * 4
    earlier, later = reports[:2]
    assert (earlier["fingerprint"], later["fingerprint"]) == (hash_of(before)[:32], hash_of(after)[:32])
    for same in ("survey", "period", "gap", "flags"):
        assert earlier.get(same) == later.get(same)


@pytest.mark.parametrize("name", SIGNED)
def test_terms_are_signed_as_their_version_says(tmp_path: Path, library: str, name: str) -> None:
    """And by the author of the vectors, whose key this test does not have."""
    given = SIGNED[name]
    full = given["pins"][-1]
    said = f"hearsay survey terms 3\ntest\n{full}" if name in OF_VERSION_3 else given["fingerprint"]
    author = Ed25519PublicKey.from_public_bytes(b64decode(given["author"]))
    author.verify(b64decode(given["signature"]), said.encode())
    with opened(library, tmp_path / "device") as device:
        device.join(terms_of(name), author=given["author"], signature=given["signature"])
        assert device.settle("test", {}).period >= 0
    with opened(library, tmp_path / "own") as device:
        device.join(terms_of(name), author=AUTHOR_KEY, signature=signature_of(said))


@pytest.mark.parametrize("name", SIGNED)
def test_signatures_of_anything_else_are_refused(tmp_path: Path, library: str, name: str) -> None:
    given = SIGNED[name]
    full, fingerprint = given["pins"][-1], given["fingerprint"]
    said = {
        "another version's": fingerprint if name in OF_VERSION_3 else f"hearsay survey terms 3\ntest\n{full}",
        "the pin alone": full,
        "another id": f"hearsay survey terms 3\nother\n{full}",
        "another pin": f"hearsay survey terms 3\ntest\n{'0' * 64}",
        "the fingerprint in place of the pin": f"hearsay survey terms 3\ntest\n{fingerprint}",
        "another number": f"hearsay survey terms 2\ntest\n{full}",
        "a line more": f"hearsay survey terms 3\ntest\n{full}\n",
    }
    signatures = {what: signature_of(text) for what, text in said.items()}
    signatures["another author's"] = given["signature"]
    signatures["none"] = ""
    with opened(library, tmp_path / "device") as device:
        for what, signature in signatures.items():
            with pytest.raises(DeviceError) as error:
                device.join(terms_of(name), author=AUTHOR_KEY, signature=signature)
            assert error.value.code == "signature", what
        with refused("signature"):
            device.join(terms_of(name), author=AUTHOR_KEY)


@pytest.mark.parametrize("name", SIGNED)
def test_the_signature_of_one_survey_is_not_that_of_another(tmp_path: Path, library: str, name: str) -> None:
    given = SIGNED[name]
    others = with_declared(terms_of(name), id="other")
    with opened(library, tmp_path / "device") as device:
        with refused("signature"):
            device.join(others, author=given["author"], signature=given["signature"])
        assert device.join(others, pin=hash_of(others)) == "other"


RANDOM = "(random guessing: 50 %). Over several periods this adds up."
KNOWING = "An attacker who knows everything about all other devices guesses whether this device reported in one period"
STAYED_AWAY = "how many came and how many stayed away."
EXACTLY = (
    "Published numbers of visitors are exact. Anyone who knows which devices usually report can see " + STAYED_AWAY
)


def with_noise(percent: str) -> str:
    return (
        "Every published number has noise, which the collector adds. "
        f"{KNOWING}, and is right in at most {percent} % of cases {RANDOM}"
    )


@pytest.mark.parametrize(
    ("name", "declared", "chance", "text"),
    [
        (NOISE, {}, 0.7310585786, with_noise("73.2")),
        (NOISE, {"presence_epsilon": 4}, 0.9820137900, with_noise("98.3")),
        (NOISE, {"presence_epsilon": 0.01}, 0.5024999792, with_noise("50.3")),
        (NOISE, {"presence_epsilon": 20.0}, 0.9999999979, with_noise("100.0")),
        (EXACT, {}, 1.0, EXACTLY),
        (
            EXACT,
            {"publish_from": 20},
            1.0,
            f"{EXACTLY} Numbers below 20 are hidden because they say little; hiding them protects nobody.",
        ),
    ],
    ids=["noise", "little noise", "much noise", "hardly any noise", "exact", "exact from 20 on"],
)
def test_a_person_is_told_which_of_both_ways_holds(
    tmp_path: Path, library: str, name: str, declared: dict[str, Any], chance: float, text: str
) -> None:
    terms = with_declared(terms_of(name), **declared)
    with opened(library, tmp_path / "device") as device:
        device.join(terms, trust_first_use=True)
        told = device.explain()["presence"]
    assert told == {"test": {"chance": pytest.approx(chance, abs=1e-9), "text": text}}


def test_a_person_is_told_that_later_answers_may_depend_on_presence_under_a_cap(tmp_path: Path, library: str) -> None:
    terms = with_declared(terms_of("version 3, noise, lists of units"), memo_cap=2)
    with opened(library, tmp_path / "device") as device:
        device.join(terms, trust_first_use=True)
        told = device.explain()["presence"]["test"]
    assert told["text"] == (
        f"{with_noise('73.2')} Under memo_cap, what this device answers later may depend on it, too, and is protected "
        "by the noise of the answers alone."
    )


@pytest.mark.parametrize("declared", [{}, {"presence_epsilon": 1.0}, {"minimum": 0}], ids=str)
@pytest.mark.parametrize("name", EARLIER)
def test_a_person_is_promised_nothing_about_presence_by_terms_that_hide_few(
    tmp_path: Path, library: str, name: str, declared: dict[str, Any]
) -> None:
    """`minimum` promised more than it kept."""
    with opened(library, tmp_path / "device") as device:
        device.join(with_declared(terms_of(name), **declared), trust_first_use=True)
        told = device.explain()["presence"]["test"]
        device.leave("test")
        assert device.explain()["presence"] == {}
    assert told["chance"] == 1.0
    assert told["text"] == (
        f"The terms are of {name}: count on no protection of presence. Anyone who knows which devices usually report "
        f"may see in published numbers {STAYED_AWAY}"
    )
