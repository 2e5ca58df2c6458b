import unittest

from taskorder import CycleError, Planned, critical_path, plan

AFTER = {"roof": ["walls"], "walls": ["ground"], "garden": ["ground"], "party": ["roof", "garden"]}
DAYS = {"ground": 5, "walls": 10, "roof": 4, "garden": 6, "party": 1}


class PlanTest(unittest.TestCase):
    def test_starts(self):
        starts = {name: task.start for name, task in plan(AFTER, DAYS).items()}
        self.assertEqual(starts, {"ground": 0, "walls": 5, "garden": 5, "roof": 15, "party": 19})

    def test_ends(self):
        self.assertEqual(plan(AFTER, DAYS)["party"].end, 20)

    def test_slack(self):
        slack = {name: task.slack for name, task in plan(AFTER, DAYS).items()}
        self.assertEqual(slack, {"ground": 0, "walls": 0, "garden": 8, "roof": 0, "party": 0})

    def test_slack_of_a_chain(self):
        planned = plan({"b": ["a"]}, {"a": 1, "b": 2, "c": 10})
        self.assertEqual([planned[name].slack for name in "abc"], [7, 7, 0])

    def test_no_duration(self):
        self.assertEqual(plan({"b": ["a"]}, {"b": 2})["b"], Planned(0, 2, 0))

    def test_no_dependencies(self):
        self.assertEqual(plan({}, {"a": 3}), {"a": Planned(0, 3, 0)})

    def test_cycle(self):
        with self.assertRaises(CycleError):
            plan({"a": ["a"]}, {})


class CriticalPathTest(unittest.TestCase):
    def test_path(self):
        self.assertEqual(critical_path(AFTER, DAYS), ["ground", "walls", "roof", "party"])

    def test_other_durations(self):
        days = {**DAYS, "garden": 30}
        self.assertEqual(critical_path(AFTER, days), ["ground", "garden", "party"])

    def test_equal_ones(self):
        self.assertEqual(critical_path({"c": ["b", "a"]}, {"a": 2, "b": 2, "c": 1}), ["a", "c"])

    def test_longest_alone(self):
        self.assertEqual(critical_path({"b": ["a"]}, {"a": 1, "b": 1, "c": 5}), ["c"])

    def test_nothing(self):
        self.assertEqual(critical_path({}, {}), [])
