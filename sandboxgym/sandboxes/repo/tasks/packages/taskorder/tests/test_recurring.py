import unittest
from datetime import date

from taskorder import business_day, next_run, parse_interval


class IntervalTest(unittest.TestCase):
    def test_units(self):
        values = [parse_interval(text) for text in ("5s", "2m", "3h", "1d", "1w")]
        self.assertEqual(values, [5, 120, 10800, 86400, 604800])

    def test_several(self):
        self.assertEqual(parse_interval("1h30m"), 5400)
        self.assertEqual(parse_interval(" 1H 30M "), 5400)

    def test_no_unit(self):
        self.assertEqual(parse_interval("90"), 90)
        self.assertEqual(parse_interval("1m30"), 90)

    def test_zero(self):
        self.assertEqual(parse_interval("0s"), 0)

    def test_none(self):
        for text in ("", "h", "5x", "1 2m", "-5s"):
            with self.subTest(text=text), self.assertRaises(ValueError):
                parse_interval(text)


class NextRunTest(unittest.TestCase):
    def test_next_multiple(self):
        self.assertEqual(next_run(125, 60), 180)

    def test_exactly_at_a_run(self):
        self.assertEqual(next_run(120, 60), 180)

    def test_offset(self):
        self.assertEqual(next_run(125, 60, offset=10), 130)
        self.assertEqual(next_run(135, 60, offset=10), 190)

    def test_done_in_time(self):
        self.assertEqual(next_run(125, 60, last=120), 180)

    def test_missed(self):
        self.assertEqual(next_run(125, 60, last=119), 125)
        self.assertEqual(next_run(500, 60, last=60), 500)


class BusinessDayTest(unittest.TestCase):
    friday = date(2024, 3, 1)

    def test_later(self):
        self.assertEqual(business_day(date(2024, 2, 27), 2), date(2024, 2, 29))

    def test_over_a_weekend(self):
        self.assertEqual(business_day(self.friday, 1), date(2024, 3, 4))
        self.assertEqual(business_day(self.friday, 6), date(2024, 3, 11))

    def test_earlier(self):
        self.assertEqual(business_day(date(2024, 3, 4), -1), self.friday)

    def test_same_day(self):
        self.assertEqual(business_day(self.friday, 0), self.friday)

    def test_no_working_day(self):
        self.assertEqual(business_day(date(2024, 3, 2), 0), date(2024, 3, 4))

    def test_holidays(self):
        holidays = [date(2024, 3, 4)]
        self.assertEqual(business_day(self.friday, 1, holidays), date(2024, 3, 5))
        self.assertEqual(business_day(date(2024, 3, 4), 0, holidays), date(2024, 3, 5))
