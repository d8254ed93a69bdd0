"""Look at data about people and propose what to do with each column, which method to use, and a policy.

In the order of the work, which is also one to read in:

1. `files/`: read the first rows of a file (`reading`) or topic (`message_table`), and see how a CSV file is laid out
   (`csv_layout`, `header_line`), how it spells numbers and dates (`csv_spelling`) and missing values (`missing_words`).
2. `columns/`: describe each column (`facts`: kind, shape, values; `column_names`: the words of its name) and count how
   many people share its values (`risk`).
3. `person/`: find the column that says whose row it is (`whose_row`), by names (`person_names`), by how values repeat
   (`person_values`) and by rows that form a panel (`panels`).
4. `wishes`: what the user states. `table_facts`: all of this together, with who, when and what.
5. `columns/roles`: guess the role of every other column; `sensitive_names`, `numeric_codes` and `derived` tell what is
   sensitive, a code, or computed from another column.
6. `proposal`: choose a family of methods. `events`, `sets` and `rows` each draft their section of a policy (`draft`);
   `generalization/` finds domains, grids and trees; `questions` lists what only a person can decide.
7. `policy_text`: write the policy.
"""

from shoal.inspection.columns.facts import Facts, look
from shoal.inspection.proposal import PersonDoubt, Proposal, propose
from shoal.inspection.wishes import Wishes

__all__ = ["Facts", "PersonDoubt", "Proposal", "Wishes", "look", "propose"]
