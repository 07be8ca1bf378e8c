"""Quantities in other units: how numbers are read, rounded as {{convert}} rounds them, and written."""

import numpy as np
import pytest
from made_up.extractors import extractor_of

from maskmill.extraction.kernels.quantities import default_precision, put_decimal, read_decimal, rounds_to_zero

LENGTH, TEMPERATURE = ord("L"), ord("T")


@pytest.mark.parametrize(
    ("text", "value", "decimals", "zeros", "known"),
    [
        ("14,000", 14000, 0, 3, True),
        ("-27.70", -27.7, 2, 0, True),
        ("−5", -5, 0, 0, True),
        ("100.", 100, 0, 0, True),
        ("", 0, 0, 0, False),
        ("-", 0, 0, 0, False),
        ("km", 0, 0, 0, False),
        ("1.5.2", 0, 0, 0, False),
        ("1/2", 0, 0, 0, False),
        ("4 to 8", 0, 0, 0, False),
        ("1234567890123", 1234567890123, 0, 0, False),
    ],
)
def test_decimals_are_read(text: str, value: float, decimals: int, zeros: int, *, known: bool) -> None:
    raw = np.frombuffer(text.encode() + bytes(8), np.uint8).copy()
    found = read_decimal(raw, 0, len(text.encode()))
    assert found[3] == known
    if known:
        assert found[:3] == (pytest.approx(value), decimals, zeros)


@pytest.mark.parametrize(
    ("value", "precision", "text"),
    [
        (55.923, 0, "56"),
        (55.923, 1, "55.9"),
        (0.04, 2, "0.04"),
        (0.004, 1, "0.0"),
        (4267.2, -2, "4300"),
        (49, -2, "0"),
        (1500000, -5, "1500000"),
        (0, 0, "0"),
        (1, 3, "1.000"),
    ],
)
def test_decimals_are_rounded(value: float, precision: int, text: str) -> None:
    out = np.zeros(60, np.uint8)
    assert bytes(out[: put_decimal(out, 0, value, precision)]).decode() == text


def test_too_many_digits_are_not_written() -> None:
    out = np.zeros(60, np.uint8)
    assert put_decimal(out, 0, 1e15, 0) == put_decimal(out, 0, 1.0, 9) == put_decimal(out, 0, 1.0, -9) == -1
    assert rounds_to_zero(-0.4, 0)
    assert not rounds_to_zero(-0.5, 0)


def test_a_result_has_two_digits_and_as_many_as_its_value() -> None:
    assert default_precision(14000.0, 0, 3, 4267.2, LENGTH, 0.3048, 0.0, False) == -2
    assert default_precision(90.0, 0, 1, 55.9, LENGTH, 1000.0, 0.0, False) == 0
    assert default_precision(0.0, 0, 0, 0.0, LENGTH, 1.0, 0.0, False) == 0
    assert default_precision(-27.7, 1, 0, 17.9, TEMPERATURE, 1.0, 273.15, False) == 1
    assert default_precision(-273.15, 2, 0, 459.7, TEMPERATURE, 1.0, 273.15, False) == 2
    assert default_precision(4356.0, 0, 0, 14291.3, LENGTH, 1.0, 0.0, True) == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("{{convert|90|km|mi}}", "90 kilometres (56 mi)"),
        ("{{convert|90|km|mi|abbr=on}}", "90 km (56 mi)"),
        ("{{convert|90|km|mi|abbr=off}}", "90 kilometres (56 miles)"),
        ("{{convert|90|km|mi|sp=us}}", "90 kilometers (56 mi)"),
        ("{{convert|14,000|ft}}", "14,000 feet (4,300 m)"),
        ("{{convert|1000|m|0|abbr=on}}", "1,000 m (3,281 ft)"),
        ("{{convert|26|mi|km|1}}", "26 miles (41.8 km)"),
        ("{{convert|10|nmi|mi km|abbr=on}}", "10 nmi (12 mi; 19 km)"),
        ("{{convert|20|kn}}", "20 knots (37 km/h; 23 mph)"),
        ("{{convert|20|m|ft|adj=on}}", "20-metre (66 ft)"),
        ("{{convert|20|m|ft|adj=on|sp=us}}", "20-meter (66 ft)"),
        ("{{convert|20|m|ft|adj=mid|-tall}}", "20-metre-tall (66 ft)"),
        ("{{convert|20|m|ft|abbr=on|adj=on}}", "20 m (66 ft)"),
        ("{{convert|5|to|10|ft}}", "5 to 10 feet (1.5 to 3.0 m)"),
        ("{{convert|200|-|350|mm|in|abbr=on}}", "200–350 mm (7.9–13.8 in)"),
        ("{{convert|100|C|F}}", "100 °C (212 °F)"),
        ("{{convert|0|C|F}}", "0 °C (32 °F)"),
        ("{{convert|1|km|mi|disp=or}}", "1 kilometre or 0.62 mi"),
        ("{{convert|60|mi|km|order=flip}}", "97 kilometres (60 mi)"),
        ("{{cvt|60|mi|km|order=flip}}", "97 km (60 mi)"),
        ("{{cvt|50|kg}}", "50 kg (110 lb)"),
        ("{{convert|48|kg|lb|abbr=on}}", "48 kg (106 lb)"),
        ("{{convert|100|/km2|/sqmi|abbr=on}}", "100 /km² (260/sq mi)"),
        ("{{convert|1.6|km|mi|0|abbr=off}}", "1.6 kilometres (1 mile)"),
        # What is not converted shows as it is given: other dimensions and roundings, fractions, unknown units.
        ("{{convert|5|km|kg}}", "5 kilometres"),
        ("{{convert|5|km|mi|round=5}}", "5 kilometres"),
        ("{{convert|5|km|parsecs}}", "5 kilometres"),
        ("{{convert|1/2|mi|km}}", "1/2 miles"),
        ("{{convert|6|ft|4|in|cm}}", "6 feet 4 inches"),
        ("{{convert|10|x|20|m|ft}}", "10 by 20 metres"),
    ],
)
def test_results_of_convert(call: str, text: str) -> None:
    assert extractor_of("en").extract(b"T", f"It is {call} there.".encode()).decode() == f"It is {text} there."
