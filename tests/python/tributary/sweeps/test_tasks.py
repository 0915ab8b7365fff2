# SPDX-License-Identifier: BSD-3-Clause
"""Lines of a list, dealt out to the tasks of whatever starts tasks."""
import unittest

from tributary.sweeps.files import lines_of
from tributary.sweeps.tasks import Task, task_of


class Tasks(unittest.TestCase):
    def test_who_says_which_task_it_is(self):
        array = {"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "2"}
        for env, want in (
            ({}, (0, 1)), (array, (1, 2)), ({"SLURM_ARRAY_TASK_ID": "3"}, (3, 9)), ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, (2, 3)),
            ({"PMI_RANK": "1", "PMI_SIZE": "4", "SLURM_PROCID": "7"}, (1, 4)), ({"SLURM_PROCID": "7", "SLURM_NTASKS": "8"}, (7, 8)),
            ({**array, "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "5"}, (1, 2)), ({"SLURM_ARRAY_TASK_ID": "", "PMI_RANK": "", "SLURM_PROCID": ""}, (0, 1)),
        ):  # fmt: skip
            self.assertEqual(task_of(env, 9), want, env)

    def test_what_is_no_task_is_refused(self):
        for env, says in (
            ({"PMI_RANK": "1"}, "found PMI_SIZE=, expected a whole number"), ({"OMPI_COMM_WORLD_RANK": "x", "OMPI_COMM_WORLD_SIZE": "2"}, "found OMPI_COMM_WORLD_RANK=x, expected a whole number"),
            ({"SLURM_NTASKS": "0"}, "found task 0 of 0, expected a number from 0 on, of 1 or more"),
        ):  # fmt: skip
            with self.assertRaises(ValueError) as e:
                task_of(env, 9)
            self.assertEqual(str(e.exception), says)

    def test_every_line_is_one_tasks(self):
        for n, tasks in ((7, 3), (2, 5), (6, 1)):
            dealt = [list(Task(i, tasks).lines(n)) for i in range(tasks)]
            self.assertEqual(sorted(i for one in dealt for i in one), list(range(n)))
        self.assertEqual(list(Task(1, 3).lines(7)), [1, 4])

    def test_empty_lines_and_notes_do_not_count(self):
        self.assertEqual(lines_of("# a\n\nx.conf -b 4\n  # b\n \t\n  y.conf #c\n"), ["x.conf -b 4", "  y.conf #c"])


if __name__ == "__main__":
    unittest.main()
