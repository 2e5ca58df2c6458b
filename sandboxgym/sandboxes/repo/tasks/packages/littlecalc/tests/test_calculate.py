import unittest

from littlecalc import CalcError, calculate, names_in


class ArithmeticTest(unittest.TestCase):
    def check(self, formula, value, **names):
        self.assertEqual(calculate(formula, names), value)

    def test_product_before_sum(self):
        self.check("2 + 3 * 4", 14)

    def test_from_the_left(self):
        self.check("10 - 3 - 2", 5)
        self.check("24 / 4 / 2", 3)

    def test_parentheses(self):
        self.check("(2 + 3) * 4", 20)

    def test_powers_from_the_right(self):
        self.check("2 ** 3 ** 2", 512)

    def test_sign_and_power(self):
        self.check("-2 ** 2", -4)
        self.check("2 ** -1", 0.5)

    def test_signs(self):
        self.check("--3", 3)
        self.check("2 - -3", 5)
        self.check("+4", 4)

    def test_sign_before_product(self):
        self.check("-2 * 3 + 10", 4)

    def test_floor_and_remainder(self):
        self.check("17 // 5", 3)
        self.check("17 % 5", 2)

    def test_names(self):
        self.check("2 * (price + 1)", 10, price=4)

    def test_decimal(self):
        self.check("0.5 + .25", 0.75)


class ComparisonTest(unittest.TestCase):
    def test_holds(self):
        self.assertEqual(calculate("1 + 1 == 2"), 1)

    def test_does_not_hold(self):
        self.assertEqual(calculate("3 < 3"), 0)

    def test_at_the_limit(self):
        self.assertEqual(calculate("(3 <= 3) + (3 >= 3)"), 2)

    def test_is_a_number(self):
        self.assertIs(type(calculate("1 != 2")), int)

    def test_order_before_equality(self):
        self.assertEqual(calculate("1 < 2 == 3 > 2"), 1)


class FunctionTest(unittest.TestCase):
    def test_min_and_max(self):
        self.assertEqual(calculate("min(3, 1, 2)"), 1)
        self.assertEqual(calculate("max(3, 1, 2)"), 3)

    def test_abs(self):
        self.assertEqual(calculate("abs(2 - 5)"), 3)

    def test_if(self):
        self.assertEqual(calculate("if(n > 10, 5, 7)", {"n": 11}), 5)
        self.assertEqual(calculate("if(n > 10, 5, 7)", {"n": 10}), 7)

    def test_if_leaves_the_other_alone(self):
        self.assertEqual(calculate("if(n == 0, 0, 10 / n)", {"n": 0}), 0)

    def test_clamp(self):
        values = [calculate("clamp(n, 2, 5)", {"n": n}) for n in (1, 2, 3, 5, 9)]
        self.assertEqual(values, [2, 2, 3, 5, 5])

    def test_round(self):
        self.assertEqual(calculate("round(2.4)"), 2)
        self.assertEqual(calculate("round(2.5)"), 3)

    def test_round_below_zero(self):
        self.assertEqual(calculate("round(-2.5)"), -3)

    def test_round_to_digits(self):
        self.assertEqual(calculate("round(3.14159, 2)"), 3.14)

    def test_wrong_number_of_arguments(self):
        with self.assertRaisesRegex(CalcError, "clamp takes 3 arguments, not 2"):
            calculate("clamp(1, 2)")

    def test_nothing_to_compare(self):
        with self.assertRaisesRegex(CalcError, "min needs a value"):
            calculate("min()")

    def test_unknown(self):
        with self.assertRaisesRegex(CalcError, "unknown function 'sqrt'"):
            calculate("sqrt(4)")


class ErrorTest(unittest.TestCase):
    def check(self, formula, message):
        with self.assertRaisesRegex(CalcError, message):
            calculate(formula)

    def test_division_by_zero(self):
        self.check("1 / 0", "division by zero")
        self.check("1 % (2 - 2)", "division by zero")

    def test_too_early(self):
        self.check("1 +", "ends too early at column 4")

    def test_too_much(self):
        self.check("1 2", "unexpected '2' at column 3")

    def test_open_parenthesis(self):
        self.check("(1 + 2", "'\\)' is missing at column 7")

    def test_operator_first(self):
        self.check("* 2", "unexpected '\\*' at column 1")

    def test_unknown_name(self):
        self.check("2 * cost", "unknown name 'cost'")

    def test_power(self):
        self.check("2 ** 1001", "too large")
        self.assertEqual(calculate("1 ** 1000"), 1)


class NamesTest(unittest.TestCase):
    def test_in_their_order(self):
        self.assertEqual(names_in("b + a * b - c"), ["b", "a", "c"])

    def test_in_functions(self):
        self.assertEqual(names_in("max(x, -y, if(z, 1, x))"), ["x", "y", "z"])
