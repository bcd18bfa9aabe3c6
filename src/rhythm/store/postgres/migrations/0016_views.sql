-- What people add to a pause or a resume for themselves and their tools, such as the id of a ticket:
-- JSON, which no workflow sees.
ALTER TABLE executions ADD COLUMN paused_metadata text;
ALTER TABLE execution_resume_requests ADD COLUMN metadata text NOT NULL DEFAULT 'null';

-- The first views for people (`views.sql`), which stand behind the newest migration: it makes them.
