import unittest

from spans import busiest, free_slots


class FreeSlotsTest(unittest.TestCase):
    def test_between_appointments(self):
        self.assertEqual(free_slots((0, 100), [(10, 20), (50, 60)]), [(0, 10), (20, 50), (60, 100)])

    def test_empty_day(self):
        self.assertEqual(free_slots((540, 1020), []), [(540, 1020)])

    def test_long_enough(self):
        self.assertEqual(free_slots((0, 60), [(15, 30)], at_least=30), [(30, 60)])
        self.assertEqual(free_slots((0, 60), [(15, 30)], at_least=31), [])

    def test_pause(self):
        self.assertEqual(free_slots((0, 60), [(20, 30)], pause=5), [(0, 15), (35, 60)])

    def test_appointments_outside_the_day(self):
        self.assertEqual(free_slots((10, 20), [(0, 12), (18, 40)]), [(12, 18)])


class BusiestTest(unittest.TestCase):
    def test_overlap(self):
        self.assertEqual(busiest([(0, 10), (5, 15), (8, 9)]), (8, 3))

    def test_first_of_equals(self):
        self.assertEqual(busiest([(0, 4), (2, 6), (10, 14), (12, 16)]), (2, 2))

    def test_touching_do_not_overlap(self):
        self.assertEqual(busiest([(0, 5), (5, 9)]), (0, 1))

    def test_empty_appointment(self):
        self.assertEqual(busiest([(3, 3), (4, 5)]), (4, 1))

    def test_none(self):
        self.assertEqual(busiest([]), (0, 0))
