-- Nobody calls these any more: searching counts by one statement, and paused jobs are woken by what their call asked for.
DROP FUNCTION count_matches(uuid, tsquery);
DROP FUNCTION resume_within_budget(numeric[]);
