-- What people add to a pause or a resume for themselves and their tools, such as the id of a ticket:
-- JSON, which no workflow sees.
ALTER TABLE executions ADD COLUMN paused_metadata TEXT;
ALTER TABLE execution_resume_requests ADD COLUMN metadata TEXT NOT NULL DEFAULT 'null';

-- The first views for people (`views.sql`), which stand behind the newest migration: it makes them.
