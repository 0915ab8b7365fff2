# SPDX-License-Identifier: BSD-3-Clause
"""Secrets in confs are found by name, and hidden wherever they are."""
import unittest

from tributary import _secret


class Secret(unittest.TestCase):
    def test_a_name_counts_however_it_is_spelt(self):
        for text in ("trunk_key", "trunkkey", "TRUNK_KEY", "Trunk-Key", "the trunk_key of m0", "t_runk__key", "trunk*key"):
            self.assertTrue(_secret.named(text), text)
        for text in ("", "trunk", "key", "trunk key", "keytrunk", "trunks_key"):
            self.assertFalse(_secret.named(text), text)

    def test_secrets_are_hidden_and_nothing_else(self):
        conf = {"name": "f", "machines": [{"name": "m0", "trunk_key": "s"}, ({"TRUNKKEY": {"a": 1}},)], "mtu": 1024}
        shown = _secret.hidden(conf)
        self.assertEqual(shown, {"name": "f", "machines": [{"name": "m0", "trunk_key": "*" * 16}, ({"TRUNKKEY": "*" * 16},)], "mtu": 1024})
        self.assertEqual(conf["machines"][0]["trunk_key"], "s")  # a copy

    def test_whether_there_is_one(self):
        for value in ({"trunk_key": 1}, [{"a": [{"trunk_key": ""}]}], ({"a": {"trunk_key": 0}},), {"b": 1, "a": {"trunk_key": 0}}):
            self.assertTrue(_secret.has(value), value)
        for value in ({}, [], {"a": "trunk_key"}, "trunk_key", 7, {"a": [{"b": ("trunk_key",)}]}):
            self.assertFalse(_secret.has(value), value)


if __name__ == "__main__":
    unittest.main()
