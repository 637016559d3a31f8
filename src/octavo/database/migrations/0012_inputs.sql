-- Inputs: the summary of a mapping, made when it is checked, so that lists need not parse every mapping of an owner.

-- Name, title, fields and required fields; NULL for a mapping that was added before this column existed.
ALTER TABLE mappings ADD COLUMN summary jsonb;
